"""Programs that run a token loop of C once: the prompt goes in, and the tokens come out."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from byoc_dory.errors import SimulationError
from htvm.aot.entry import render
from htvm.firmware.build import RUN_MARK, Built, build_host, build_rv32
from htvm.sim.host import run_host
from htvm.sim.rv32 import run_rv32
from htvm.tools.language import LanguageModel
from htvm.tools.language.token_loop import loop_fields, loop_files

__all__ = ["LoopRun", "build_token_loop", "run_token_loop"]

_FIRST_STEP = 0  # the mark at the beginning of each run of the network


def build_token_loop(step: Built, language: LanguageModel, *, sanitize: bool = False) -> Built:
    """Return a program that runs the token loop once, for the platform of a built step.

    Args:
        step: the decoding step, as it was built.
        language: the language model that it was built from.
        sanitize: as for `build_host`; for that platform only.

    Raises:
        L2OverflowError: state and tables exceed L2.
        UnsupportedError: see `loop_files`.
    """
    native = step.platform == "host"
    main = render(
        "run_generate.c.jinja",
        **loop_fields(step.program, language),
        native=native,
        run_mark=RUN_MARK,
    )
    files = {**loop_files(step.program, language), "main.c": main}
    if native:
        return build_host(
            step.program, step.soc, step.compiler, sanitize=sanitize, extra_sources=files
        )
    return build_rv32(step.program, step.soc, step.compiler, extra_sources=files)


@dataclass(frozen=True)
class LoopRun:
    """What a token loop returned.

    Attributes:
        code: result of the C function, 0 or an error.
        tokens: what it wrote; zeros behind that.
        cycles: cycles from the beginning of each run of the network to that of the next, or to the
            end; None on the host platform.
    """

    code: int
    tokens: tuple[int, ...]
    cycles: tuple[int, ...] | None


def run_token_loop(
    built: Built,
    language: LanguageModel,
    prompt: Sequence[int],
    steps: int,
    *,
    sharpness: int = 0,
    seed: int = 0,
    prompt_length: int | None = None,
) -> LoopRun:
    """Run a program of `build_token_loop` once.

    Args:
        built: the program.
        language: the language model that it was built from.
        prompt: the prompt, at most one token longer than the cache.
        steps, sharpness, seed: arguments of the C functions.
        prompt_length: what the C function is told, if not the number of tokens.

    Raises:
        SimulationError: the core trapped, or a device model complained.
    """
    length = len(prompt) if prompt_length is None else prompt_length
    padded = [*prompt, *[0] * (language.length + 1 - len(prompt))]
    request = struct.pack(f"<QIII{len(padded)}I", seed, sharpness, length, steps, *padded)
    request += bytes(-len(request) % 8)  # as the struct is padded
    size = 4 + 4 * language.positions
    if built.native is not None:
        (raw,) = run_host(built.native, [request], [size])
        return _answer(raw, None)
    assert built.firmware is not None
    result = run_rv32(
        built.firmware,
        {"htvm_run_request": request},
        {"htvm_run_answer": size},
        compiler=built.compiler,
    )
    starts = [cycle for cycle, event in result.marks if event == _FIRST_STEP]
    ends = [cycle for cycle, event in result.marks if event == RUN_MARK + 1]
    if len(ends) != 1:
        raise SimulationError("the firmware did not end its run", where=str(built.path))
    cycles = tuple(later - earlier for earlier, later in pairwise([*starts, *ends]))
    return _answer(result.outputs["htvm_run_answer"], cycles)


def _answer(raw: bytes, cycles: tuple[int, ...] | None) -> LoopRun:
    code, *tokens = struct.unpack(f"<i{len(raw) // 4 - 1}I", raw)
    return LoopRun(code, tuple(tokens), cycles)
