"""The page: where ours is worse than TFLite Micro, each side's best, then all figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.boards_text import PUBLISHED
from benchmarks.tflm.cells import FAST, OURS, Cell
from benchmarks.tflm.layers import Pair, best, middle
from benchmarks.tflm.run import Counted
from byoc_dory.soc.registry import resolve
from htvm.firmware.arm import core_of

__all__ = ["FLASH_GOAL", "INSTRUCTIONS_GOAL", "LEFT", "RAM_GOAL", "headline", "page"]

LEFT = "left out: "
"""How a version begins that is none, but says what was not measured."""

INSTRUCTIONS_GOAL, FLASH_GOAL, RAM_GOAL = 0.55, 0.6, 0.8
"""The largest share of CMSIS-NN's instructions, flash and RAM that we aim at."""

LEAST: Mapping[str, float] = {"": 2, "dsp": 0.5, "mve": 0.0625}
"""Extension of a core -> the fewest instructions a product, loads apart."""

_CORES_BESIDE = 3
"""The columns of so many cores fit beside each other."""

MICROTVM: Mapping[str, float] = {
    "ResNet-8": 389.6, "DS-CNN": 99.8, "MobileNet": 300.8, "autoencoder": 8.6,
}  # fmt: skip
"""Milliseconds of microTVM with CMSIS-NN on the STM32L4R5 at 120 MHz (MLPerf Tiny v1.1)."""

_CYCLES_PER_MS = 120_000

_HEAD = """# Beside TFLite Micro with CMSIS-NN

The same four files, on the same emulated cores, by the compilers that people use: TFLite Micro
with CMSIS-NN's kernels, and this project. `python -m benchmarks.tflm SOURCES` measures both and
writes this page; SOURCES has TFLite Micro's sources and those that it needs, which this repository
does not have. With `-n DS-CNN -c cortex_m4 -C gcc:-O2` it prints the kernels of these cells only.

- **Cycles are estimates, not measured**: the middle of what Arm's manual of the core gives for the
  executed instructions, from memory without wait states (M0+ and M4). The manuals of the M7, M33,
  M55 and M85 give none, and the M7 and M85 issue instructions in pairs, so that instructions are
  compared there.
- *Best* is what takes the fewest cycles, or instructions where no cycles are estimated: each side
  by the compiler, the level of optimization and, for CMSIS-NN, the option that suits it, per core
  and network. CMSIS-NN is built with and without `CMSIS_NN_USE_REQUANTIZE_INLINE_ASSEMBLY`, which
  it recommends ("assembly" below; it is not for the M0+).
- A compiler that does not know the M85 compiles for the M55, which has the same instructions; GCC
  and clang here do so, ziglang's clang knows it. Its programs run on QEMU's machine with an M55.
- Kernels are compiled with the level in the table, TFLite Micro's interpreter and the wrappers of
  its kernels with `-Os` and `-O2` as in its own build, without error texts, with only the operators
  that a network has, in their int8 variants.
- Floating point is in software everywhere; TFLite Micro needs it to prepare, not in an inference.
- Flash: the linked firmware, with the network. RAM: the arena as used (inputs and outputs are in
  it; ours are apart and counted), all other variables, and the stack as measured by painting it.
- A kernel's padding is counted with it.
"""

_BOUND = """
The bound of each core is in the head of its columns, in instructions apart from loads: `SMLAD` of
the M4, M7 and M33 computes two products, `VMLADAV` of the M55 and M85 sixteen; the M0+ takes `MULS`
and `ADDS` for one.

Of the inner loops on the M4: two pixels by two channels take at least 20 cycles for 16 products (8
`SMLAD`, 4 `SXTB16`, loads of 4 and 2 words), 1.25 a product; two by three take 27 for 24, 1.13, and
three by two 26, 1.08; two by four 15 for 16, 0.94, where words have weights of two channels. No
loop with `SMLAD` takes fewer than 0.5. Requantization, columns and padding come on top.
"""


def page(results: Mapping[Cell, Counted], versions: Sequence[str]) -> str:
    """Return the page as Markdown.

    Args:
        results: of both sides, for each network, core and compiler.
        versions: of what was compiled and what compiled it.
    """
    places = [*dict.fromkeys((cell.core, cell.network) for cell in results)]
    chosen = [best(results, core, network) for core, network in places]
    parts = [_HEAD, "## Where ours is worse, or misses its goal\n", headline(results), ""]
    parts += [
        f"- **not equal to the golden**: {cell}" for cell, one in results.items() if not one.equal
    ]
    parts += [*_worse(chosen)] or ["No kernel is slower.", ""]
    parts += [f"- {line}" for line in [*_counts(chosen, results), *_sizes(chosen, results)]]
    parts.append(
        "\nThe goals are no kernel slower than CMSIS-NN's, at most "
        f"{INSTRUCTIONS_GOAL:.0%} of its instructions, {FLASH_GOAL:.0%} of its flash and "
        f"{RAM_GOAL:.0%} of its RAM.\n"
    )
    parts += ["## Each side's best\n", *_bests(chosen)]
    parts += ["\n## By compiler\n", *_compilers(results, places)]
    parts += ["\n## Flash and RAM\n", *_memories(chosen)]
    parts += ["\n## Kernel by kernel\n", "Each side's best of the network.", _BOUND]
    parts += _kernels(chosen)
    parts += _published(chosen)
    left = [text for text in versions if text.startswith(LEFT)]
    parts.append(f"\nVersions: {', '.join(text for text in versions if text not in left)}.\n")
    parts += [f"- {text}" for text in left] + ([""] if left else [])
    return "\n".join(parts)


def headline(results: Mapping[Cell, Counted]) -> str:
    """Return one sentence: the largest shares of CMSIS-NN's figures, best and by one compiler."""
    places = [*dict.fromkeys((cell.core, cell.network) for cell in results)]
    chosen = [best(results, core, network) for core, network in places]
    texts = []
    for core in dict.fromkeys(core for core, _ in places):
        pair = max((each for each in chosen if each.core == core), key=lambda each: each.share)
        texts.append(f"{pair.share:.0%} on the {_short(core)} ({pair.network})")
    alike = [
        best(results, core, network, setting)
        for core, network in places
        for setting in _settings(results, core, network)
    ]
    same = max(alike, key=lambda each: each.share)
    return (
        "Beside TFLite Micro with CMSIS-NN, each side by its best compiler and options, this "
        f"project's worst network of MLPerf Tiny takes {', '.join(texts)} of its "
        f"estimated cycles{_uncounted(results)}; by the same compiler for both, the worst takes "
        f"{same.share:.0%} ({same.network}, {_short(same.core)}, {same.ours.setting})."
    )


def _uncounted(results: Mapping[Cell, Counted]) -> str:
    """Return the cores without estimates of cycles, as they are named behind these."""
    cores = {_short(cell.core): None for cell, one in results.items() if one.estimate is None}
    return f" ({', '.join(cores)}: instructions)" if cores else ""


def _settings(
    results: Mapping[Cell, Counted], core: str, network: str
) -> dict[tuple[str, str], None]:
    """Return the compilers and levels that a network was measured with."""
    return {
        (cell.compiler, cell.level): None
        for cell in results
        if (cell.core, cell.network) == (core, network)
    }


def _short(core: str) -> str:
    return core.removeprefix("cortex_").replace("m", "M").replace("plus", "+")


def _worse(chosen: Sequence[Pair]) -> Iterator[str]:
    for pair in chosen:
        slower = [f"{one.name} {ratio:.2f}" for one, _, ratio in pair.kernels() if ratio > 1]
        if slower:
            yield f"- {pair.network}, {_short(pair.core)}: slower kernels: {', '.join(slower)}"


def _least(pair: Pair, results: Mapping[Cell, Counted], figure: str) -> tuple[int, int]:
    """Return the least of a figure by any compiler: ours, and the other side's."""
    of = [(cell.by, getattr(one, figure)) for cell, one in results.items() if pair.covers(cell)]
    return min(value for by, value in of if by == OURS), min(
        value for by, value in of if by == FAST
    )


def _counts(chosen: Sequence[Pair], results: Mapping[Cell, Counted]) -> Iterator[str]:
    """What misses the goal of instructions, by the compiler with the fewest for each."""
    for pair in chosen:
        mine, other = _least(pair, results, "instructions")
        if mine > INSTRUCTIONS_GOAL * other:
            yield (
                f"{pair.network}, {_short(pair.core)}: {mine:,} instructions, with CMSIS-NN "
                f"{other:,}: {mine / other:.1%}"
            )


def _sizes(chosen: Sequence[Pair], results: Mapping[Cell, Counted]) -> Iterator[str]:
    """What misses the goals of flash and RAM, by the compiler with the least flash for each."""
    for pair in chosen:
        mine, other = _least(pair, results, "flash")
        if mine > FLASH_GOAL * other:
            constants = pair.mine.constants
            room = int(FLASH_GOAL * other) - constants
            left = f"leave {room:,} B for code" if room > 0 else "exceed the goal without any code"
            yield (
                f"{pair.network}, {_short(pair.core)}: {mine:,} B of flash, with CMSIS-NN "
                f"{other:,}: {mine / other:.0%}; constants (weights, biases, factors), "
                f"{constants:,} B or {constants / other:.0%}, {left}"
            )
        if pair.mine.ram > RAM_GOAL * pair.other.ram:
            yield (
                f"{pair.network}, {_short(pair.core)}: {pair.mine.ram:,} B of RAM, with CMSIS-NN "
                f"{pair.other.ram:,}: {pair.mine.ram / pair.other.ram:.0%}"
            )


def _bests(chosen: Sequence[Pair]) -> Iterator[str]:
    yield (
        "| core | network | cycles, ours | CMSIS-NN | of it | instructions, ours | CMSIS-NN "
        "| of it | ours by | CMSIS-NN by |"
    )
    yield "|---|---|--:|--:|--:|--:|--:|--:|---|---|"
    for pair in chosen:
        mine, other = pair.mine, pair.other
        cells = [
            _short(pair.core), pair.network, *_cycles(mine, other),
            f"{mine.instructions:,}", f"{other.instructions:,}",
            f"{mine.instructions / other.instructions:.0%}",
            pair.ours.setting, pair.theirs.setting,
        ]  # fmt: skip
        yield _row(cells)


def _cycles(mine: Counted, other: Counted) -> list[str]:
    own, its = middle(mine.estimate), middle(other.estimate)
    if own is None or its is None:
        return ["-", "-", "-"]
    return [f"{own:,}", f"{its:,}", f"{own / its:.0%}"]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _compilers(results: Mapping[Cell, Counted], places: Sequence[tuple[str, str]]) -> Iterator[str]:
    settings = [*dict.fromkeys((cell.compiler, cell.level) for cell in results)]
    yield f"Millions of cycles{_uncounted(results)}, ours of CMSIS-NN's better option.\n"
    yield _row(["core", "network", *(" ".join(each) for each in settings)])
    yield f"|---|---|{'--:|' * len(settings)}"
    for core, network in places:
        texts = []
        for compiler, level in settings:
            if Cell(network, core, OURS, compiler, level) not in results:
                texts.append("-")
                continue
            pair = best(results, core, network, (compiler, level))
            figures = (_figure(pair.mine) / 1e6, _figure(pair.other) / 1e6)
            texts.append(f"{figures[0]:.3g} of {figures[1]:.3g}: {pair.share:.0%}")
        yield _row([_short(core), network, *texts])


def _figure(counted: Counted) -> int:
    return middle(counted.estimate) or counted.instructions


def _memories(chosen: Sequence[Pair]) -> Iterator[str]:
    yield "By each side's best of the network.\n"
    yield (
        "| core | network | by | flash B | of it | constants B | RAM B | of it | of it arena B | "
        "stack B |"
    )
    yield "|---|---|---|--:|--:|--:|--:|--:|--:|--:|"
    for pair in chosen:
        for cell, one in ((pair.ours, pair.mine), (pair.theirs, pair.other)):
            yield _row(
                [
                    _short(pair.core),
                    pair.network,
                    f"{cell.by}, {cell.setting}",
                    f"{one.flash:,}",
                    f"{one.flash / pair.other.flash:.0%}",
                    f"{one.constants:,}" if one.constants else "-",
                    f"{one.ram:,}",
                    f"{one.ram / pair.other.ram:.0%}",
                    f"{one.arena:,}",
                    f"{one.stack:,}",
                ]  # fmt: skip
            )


def _kernels(chosen: Sequence[Pair]) -> Iterator[str]:
    for network in dict.fromkeys(pair.network for pair in chosen):
        of = [pair for pair in chosen if pair.network == network]
        yield f"\n### {network}\n"
        for first in range(0, len(of), _CORES_BESIDE):
            yield from _beside(of[first : first + _CORES_BESIDE])
            yield ""


def _beside(of: Sequence[Pair]) -> Iterator[str]:
    """Yield the kernels of a network on several cores."""
    head = ["kernel", "products"]
    for pair in of:
        unit = "instructions" if pair.mine.estimate is None else "cycles"
        least = LEAST[core_of(resolve(pair.core).soc).extension]
        head += [
            f"{_short(pair.core)} {unit}",
            f"a product (least {least:g})",
            "CMSIS-NN",
            "of it",
        ]
    yield _row(head)
    yield f"|---|--:|{'--:|' * (len(head) - 2)}"
    columns = [pair.kernels() for pair in of]
    for together in zip(*columns, strict=True):
        one = together[0][0]
        texts = [one.name, f"{one.macs:,}" if one.macs else "-"]
        for mine, other, ratio in together:
            number = middle(mine.estimate) or mine.instructions
            its = middle(other.estimate) or other.instructions
            rate = f"{number / mine.macs:.2f}" if mine.macs else "-"
            texts += [f"{number:,}", rate, f"{its:,}", f"{ratio:.2f}"]
        yield _row(texts)


def _published(chosen: Sequence[Pair]) -> Iterator[str]:
    of = [pair for pair in chosen if pair.core == "cortex_m4"]
    if not of:
        return
    yield """
## Estimates of cycles, and how far off they may be

On the M4. We know of no published run of exactly one of these programs on a chip. The nearest are
MLPerf Tiny's results on the STM32L4R5 at 120 MHz, whose flash has wait states, by other compilers:
microTVM with CMSIS-NN (v1.1), and X-CUBE-AI (v1.2), ST's closed software.
"""
    yield (
        "| network | this project | TFLite Micro, CMSIS-NN | microTVM, CMSIS-NN, published "
        "| of the estimate of TFLite Micro | X-CUBE-AI, published | ours of it |"
    )
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for pair in of:
        assert pair.mine.estimate is not None and pair.other.estimate is not None
        cube = _CYCLES_PER_MS * PUBLISHED[pair.core][-1][pair.network]
        microtvm = _CYCLES_PER_MS * MICROTVM[pair.network]
        low, high = (microtvm / number for number in reversed(pair.other.estimate))
        yield _row(
            [
                pair.network,
                *("{:,} to {:,}".format(*each.estimate) for each in (pair.mine, pair.other)),
                f"{microtvm:,.0f}",
                f"{low:.2f} to {high:.2f}",
                f"{cube:,.0f}",
                "{:.2f} to {:.2f}".format(*(number / cube for number in pair.mine.estimate)),
            ]  # fmt: skip
        )
