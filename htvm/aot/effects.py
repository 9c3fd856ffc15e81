"""What the functions that kernels call read and write: the elements at each of their pointers.

A call is described as loops around one access per pointer, whose steps depend on nothing but the
call's numbers, so that `htvm.aot.accesses` follows it like the loops that it stands for.  Functions
are those of ``runtime_c/simd`` that rows of `htvm.aot.intrinsics` for Cortex-M cores without Helium
name; whoever divides a kernel takes any other for a reason not to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tvm import tirx
from tvm.ir import Call, StringImm, TensorLoad
from tvm.tirx.stmt import Evaluate

from htvm.aot.intrinsics import (
    BAND,
    BLOCK_ENDINGS,
    HALFWORDS,
    PIXELS,
    PREFIX,
    SPREAD,
    THREE_BY_THREE,
    image_words,
)

Steps: TypeAlias = Mapping[str, int]
"""By the name of a loop: elements that one of its turns moves a pointer.  Others do not move it."""


@dataclass(frozen=True)
class Division:
    """How a call can be divided into several, each with a range of a loop's turns.

    Attributes:
        loop: name of the loop.
        argument: place of the call's argument that is its number of turns.
        multiple: a part has a multiple of so many turns.
        least: a part has so many turns at least.
    """

    loop: str
    argument: int
    multiple: int = 1
    least: int = 1


@dataclass(frozen=True)
class Effects:
    """What a call reads and writes.

    Attributes:
        loops: number of turns of each loop, by name.
        writes, reads: by the place of a pointer among the call's arguments: how loops move it.
        division: how the call can be divided; ``None``: it cannot.
    """

    loops: Mapping[str, int]
    writes: Mapping[int, Steps] = field(default_factory=dict[int, Steps])
    reads: Mapping[int, Steps] = field(default_factory=dict[int, Steps])
    division: Division | None = None


@dataclass(frozen=True, eq=False)
class KernelCall:
    """A call of a function in a lowered kernel.

    Attributes:
        name: of the function.
        arguments: all of them.
        pointers: by place: the element whose address is given.
        effects: what the call reads and writes; ``None`` if nothing says so.
    """

    name: str
    arguments: tuple[Any, ...]
    pointers: Mapping[int, TensorLoad]
    effects: Effects | None


def call_of(stmt: Any) -> KernelCall | None:
    """Read a statement; ``None`` if it is no call of a function whose arguments are addresses of
    elements and numbers."""
    call = stmt.value if isinstance(stmt, Evaluate) else None
    if not isinstance(call, Call) or not call.args or not isinstance(call.args[0], StringImm):
        return None
    name, arguments = str(call.args[0].value), tuple(call.args[1:])
    pointers: dict[int, TensorLoad] = {}
    numbers: list[int] = []
    for place, argument in enumerate(arguments):
        pointed = argument.args[0] if isinstance(argument, Call) and len(argument.args) else None
        if isinstance(argument, tirx.IntImm):
            numbers.append(int(argument.value))
        elif isinstance(pointed, TensorLoad) and len(pointed.indices) == 1:
            pointers[place] = pointed
        else:
            return None
    found = EFFECTS.get(name)
    return KernelCall(name, arguments, pointers, found(*numbers) if found is not None else None)


# --- rows ------------------------------------------------------------------------------------
# Each is given the numbers among a call's arguments, in their order.


def _copy(count: int) -> Effects:
    return Effects(
        {"element": count}, {0: {"element": 1}}, {1: {"element": 1}}, Division("element", 2)
    )


def _fill(_value: int, count: int) -> Effects:
    return Effects({"element": count}, {0: {"element": 1}}, division=Division("element", 2))


def _copy_runs(runs: int, copied: int, filled: int, _value: int) -> Effects:
    loops = {"run": runs, "to": copied + filled, "from": copied}
    return Effects(
        loops,
        {0: {"run": copied + filled, "to": 1}},
        {1: {"run": copied, "from": 1}},
        Division("run", 2),
    )


def _window(rows: int, pitch: int, run: int, size: int) -> Effects:
    loops = {"row": rows, "from": run, "to": size}
    return Effects(loops, {0: {"to": 1}}, {1: {"row": pitch, "from": 1}})


def _widened(pixels: int) -> Callable[[int], Effects]:
    def effects(words: int) -> Effects:
        each = 2 * pixels
        return Effects(
            {"word": words, "made": each, "element": 4},
            {0: {"word": each, "made": 1}},
            {1 + pixel: {"word": 4, "element": 1} for pixel in range(pixels)},
            Division("word", 1 + pixels),
        )

    return effects


def _widened_image(pixels: int, pitch: int) -> Effects:
    loops = {"row": 3, "element": 6 * pixels + 3, "made": image_words(pixels)}
    return Effects(loops, {0: {"made": 1}}, {1: {"row": pitch, "element": 1}})


def _spread(pixels: int) -> Callable[[int], Effects]:
    def effects(words: int) -> Effects:
        each, less = 4 * pixels, {2 + pixels: {"pixel": 1}}
        data = {1 + pixel: {"word": 4, "element": 1} for pixel in range(pixels)}
        loops = {"word": words, "made": each, "element": 4, "pixel": pixels}
        return Effects(loops, {0: {"word": each, "made": 1}, **less}, {**data, **less})

    return effects


def _block(pixels: int, channels: int, spread: bool) -> Callable[[int], Effects]:
    def effects(words: int) -> Effects:
        column = pixels * (4 * words + 1 if spread else 2 * words)
        sums = {0: {"sum": 1}}
        loops = {"sum": pixels * channels, "column": column, "weight": 4 * channels * words}
        return Effects(loops, sums, {**sums, 1: {"column": 1}, 2: {"weight": 1}})

    return effects


def _scaled(pixels: int, alike: bool, spread: bool = False) -> Callable[..., Effects]:
    def effects(words: int, channels: int, *others: int) -> Effects:
        """Further numbers: elements from a pixel to the next, if there are several; zero point."""
        apart = others[0] if len(others) > 1 else 0
        loops = {
            "pixel": pixels or words // 2,
            "channel": channels,
            "column": pixels * (4 * words + 1) if spread else 2 * words * max(pixels, 1),
            "weight": 4 * words if pixels else 8,
        }
        own = {"channel": 1}
        factors = {} if alike else own
        return Effects(
            loops,
            {0: {"pixel": apart, **own}},
            {
                1: {"column": 1},
                2: {"channel": loops["weight"], "weight": 1},
                **{3: own, 4: factors, 5: factors},
            },
            Division("channel", 7, multiple=4) if pixels == 1 else None,
        )

    return effects


def _scaled_pairs(words: int, channels: int, apart: int, pairs: int, _zero: int) -> Effects:
    own, weights = {"channel": 1}, 4 * words
    loops = {"pixel": 2 * pairs, "channel": channels, "column": 4 * words * pairs}
    return Effects(
        {**loops, "weight": weights},
        {0: {"pixel": apart, **own}},
        {1: {"column": 1}, 2: {"channel": weights, "weight": 1}, **dict.fromkeys((3, 4, 5), own)},
    )


def _scaled_image(pixels: int, channels: int, apart: int, _zero: int) -> Effects:
    own = {"channel": 1}
    loops = {"pixel": pixels, "channel": channels, "column": image_words(pixels), "weight": 28}
    return Effects(
        loops,
        {0: {"pixel": apart, **own}},
        {1: {"column": 1}, 2: {"channel": 28, "weight": 1}, **dict.fromkeys((3, 4, 5), own)},
    )


def _depthwise(pixels: int, stride: int) -> Callable[[int, int, int], Effects]:
    def effects(channels: int, row: int, _zero: int) -> Effects:
        own = {"channel": 1}
        return Effects(
            {"pixel": pixels, "channel": channels, "row": 3, "column": 3, "weight": 9},
            {0: {"pixel": channels, **own}},
            {
                1: {"pixel": stride * channels, "row": row, "column": channels, **own},
                2: {"channel": 9, "weight": 1},
                **dict.fromkeys((3, 4, 5), own),
            },
        )

    return effects


def _band(channels: int, row: int, rows: int, columns: int, _zero: int, _small: int) -> Effects:
    own, pairs = {"channel": 1}, {2: {"pair": 1}}
    return Effects(
        {
            **{"y": rows, "x": columns, "channel": channels, "row": 3, "column": 3, "weight": 9},
            "pair": BAND.pairs(rows, columns, 1),
        },
        {0: {"y": columns * channels, "x": channels, **own}, **pairs},
        {
            1: {"y": row, "x": channels, "row": row, "column": channels, **own},
            **pairs,
            3: {"channel": 9, "weight": 1},
            **dict.fromkeys((4, 5, 6), own),
        },
        # A last column that is alone takes four rows at once.
        Division("y", 9, least=4 if columns % 2 else 2),
    )


def _pool(rows: int, pitch: int, columns: int, step: int, channels: int) -> Effects:
    return Effects(
        {"row": rows, "column": columns, "channel": channels},
        {0: {"channel": 1}},
        {1: {"row": pitch, "column": step, "channel": 1}},
        Division("channel", 6, multiple=4),
    )


EFFECTS: Mapping[str, Callable[..., Effects]] = {
    "htvm_copy": _copy,
    "htvm_fill": _fill,
    "htvm_copy_runs": _copy_runs,
    "htvm_window": _window,
    "htvm_widen_image": _widened_image,
    "htvm_scaled_image": _scaled_image,
    "htvm_scaled_two_paired": _scaled_pairs,
    "htvm_scaled_two_dual_paired": _scaled_pairs,
    f"{SPREAD.name}scaled_two": _scaled(2, alike=False, spread=True),
    "htvm_pool_sums": _pool,
    **{f"{PREFIX}widen_{name}": _widened(pixels) for pixels, name in PIXELS.items()},
    **{f"{SPREAD.name}{PIXELS[pixels]}": _spread(pixels) for pixels in (1, 2)},
    **{
        f"{row.name}{ending}{long}": _block(*block, spread=row is SPREAD)
        for row in (HALFWORDS, SPREAD)
        for block, ending in BLOCK_ENDINGS.items()
        for long in ("", "_long")
    },
    **{
        f"{HALFWORDS.name}scaled_{ending}": _scaled(pixels, alike)
        for ending, pixels, alike in (
            ("one", 1, False),
            ("one_alike", 1, True),
            ("two", 2, False),
            ("three", 3, False),
            ("row", 0, False),  # pixels of two words each
        )
    },
    **{
        f"{THREE_BY_THREE.name}{pixels}_{stride}": _depthwise(pixels, stride)
        for pixels in THREE_BY_THREE.scaled
        for stride in (1, 2)
    },
    f"{BAND.name}1": _band,
}
"""What a call reads and writes, by the function's name."""
