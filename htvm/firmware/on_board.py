"""What packages of build systems take from the board that they are made for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from byoc_dory.soc.board import Board, PlatformIO, board_called

if TYPE_CHECKING:
    from byoc_dory.soc.base import Soc

ESP_IDF_CHIPS = "ESP32"
"""How the names of ESP-IDF's chips begin."""

_NO_NAMES = PlatformIO(platform="", board="", framework="arduino")


def board_of(soc: Soc) -> Board | None:
    """Return the board of a microcontroller; ``None`` if it was built for a core alone."""
    declared = {parameter.name: parameter.default for parameter in soc.parameters}
    name = soc.settings.get("board")
    return None if name is None or name == declared["board"] else board_called(str(name))


def pio_names(board: Board | None) -> PlatformIO:
    """Return PlatformIO's names of a board; empty ones, for the user to fill in, of no board."""
    return _NO_NAMES if board is None or board.platformio is None else board.platformio


def console(board: Board | None) -> str:
    """Return where text that a board prints arrives, in brackets behind a space; or nothing."""
    return f" ({board.console})" if board is not None and board.console else ""


def gcc_flags(soc: Soc, board: Board) -> tuple[str, ...]:
    """Return GCC's flags for a board with a Cortex-M core, and its unit for floating point.

    Everything that is linked together must be compiled with the same ones.
    """
    core = soc.host.arm
    assert core is not None, soc.host.name
    flags = ("-mthumb", f"-mcpu={core.cpu}")
    if core.extension == "mve":  # whose vectors are in the unit's registers
        return (*flags, "-mfloat-abi=hard")
    return (*flags, f"-mfpu={board.fpu}", "-mfloat-abi=hard") if board.fpu else flags
