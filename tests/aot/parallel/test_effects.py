"""What called functions are said to read and write, against the functions themselves."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from htvm.aot.effects import EFFECTS, Effects, Steps
from htvm.aot.intrinsics import BLOCK_ENDINGS, IMAGE, KERNELS, PIXELS, ROW, CoreKernels
from htvm.firmware.paths import runtime_c
from tests.tools import tool

# Pointers to int8 (b), int32 (i), uint32 (w) and uint8 (u), and numbers.
CALLS = """
htvm_copy b b 36
htvm_fill b -5 30
htvm_copy_runs b b 6 3 1 -128
htvm_copy_runs b b 3 5 2 1
htvm_window b b 3 20 9 28
htvm_widen_one w b 7
htvm_widen_two w b b 7
htvm_widen_three w b b b 5
htvm_widen_image w b 4 60
htvm_spread_one i b 5 i
htvm_spread_two i b b 5 i
htvm_two_by_two i w b 5
htvm_two_by_two_long i w b 36
htvm_one_by_four i w b 6
htvm_one_by_two i w b 3
htvm_spread_two_by_two i i b 5
htvm_spread_two_by_two_long i i b 36
htvm_spread_one_by_four i i b 6
htvm_spread_one_by_two i i b 3
htvm_scaled_one b w b i i u 5 24 -128
htvm_spread_scaled_two b i b i i u 36 8 9 3
htvm_scaled_one_alike b w b i i u 5 12 3
htvm_scaled_two b w b i i u 5 8 9 -128
htvm_scaled_two_paired b w b i i u 5 8 8 1 -128
htvm_scaled_two_paired b w b i i u 3 12 12 4 -128
htvm_scaled_two_dual_paired b w b i i u 3 12 12 4 -128
htvm_scaled_three b w b i i u 5 6 7 3
htvm_scaled_row b w b i i u 32 5 16 -128
htvm_scaled_image b w b i i u 4 8 8 -128
htvm_depthwise_3_1 b b b i i u 8 96 -128
htvm_depthwise_4_1 b b b i i u 8 96 -128
htvm_depthwise_5_1 b b b i i u 8 96 3
htvm_depthwise_3_2 b b b i i u 8 96 -128
htvm_depthwise_4_2 b b b i i u 8 96 -128
htvm_depthwise_5_2 b b b i i u 8 96 -128
htvm_band_1 b b w b i i u 8 64 4 6 -128 0
htvm_band_1 b b w b i i u 8 64 4 6 -128 1
htvm_band_1 b b w b i i u 4 36 5 5 3 1
htvm_pool_sums i b 3 40 2 8 6
"""

_TYPES = {"b": "int8_t", "i": "int32_t", "w": "uint32_t", "u": "uint8_t"}

_PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "htvm_intrinsics.h"
#include "htvm_runs.h"
#include "htvm_spread.h"
static int wrong;
static void *made(size_t bytes)
{
    unsigned char *const data = malloc(bytes); /* as long as said: beyond, the sanitizer stops */
    for (size_t i = 0; i < bytes; i++) data[i] = 5;
    return data;
}
static void kept(const char *where, const void *data, size_t size, const char *written, size_t n)
{
    for (size_t i = 0; i < n * size; i++) {
        if (!written[i / size] && ((const unsigned char *)data)[i] != 5) {
            printf("%s writes element %zu\\n", where, i / size);
            wrong = 1;
        }
    }
}
"""


def _numbers(call: str) -> tuple[str, list[str]]:
    name, *arguments = call.split()
    return name, arguments


def _said(call: str) -> Effects:
    name, arguments = _numbers(call)
    return EFFECTS[name](*(int(each) for each in arguments if each not in _TYPES))


def _elements(effects: Effects, steps: Steps) -> set[int]:
    ranges = [range(0, effects.loops[name] * step, step) if step else [0]
              for name, step in steps.items()]  # fmt: skip
    return {sum(place) for place in itertools.product(*ranges)}


def _statements(number: int, call: str) -> Iterator[str]:
    name, arguments = _numbers(call)
    effects = _said(call)
    given, after = [], []
    for place, argument in enumerate(arguments):
        if argument not in _TYPES:
            given.append(argument)
            continue
        written = _elements(effects, effects.writes[place]) if place in effects.writes else set()
        read = _elements(effects, effects.reads[place]) if place in effects.reads else set()
        size, pointer = max(written | read) + 1, f"p{place}"
        yield f"{_TYPES[argument]} *{pointer} = made({size} * sizeof *{pointer});"
        text = "".join("\\001" if at in written else "\\000" for at in range(size))
        after.append(
            f'kept("{name}, pointer {place}", {pointer}, sizeof *{pointer}, "{text}", {size});'
            f" free({pointer});"
        )
        given.append(pointer)
    yield f"{name}({', '.join(given)});"
    yield from after


def test_functions_touch_what_is_said_and_no_more(tmp_path: Path) -> None:
    """Compiled for this machine: arrays end where reads do, and nothing else is written."""
    blocks = ["{" + "\n".join(_statements(*each)) + "}" for each in enumerate(_calls())]
    source = tmp_path / "calls.c"
    source.write_text(_PROGRAM + "int main(void) {\n" + "\n".join(blocks) + "\nreturn wrong; }\n")
    program = tmp_path / "calls"
    subprocess.run(
        [tool("gcc"), "-std=c11", "-g", "-fsanitize=address", "-I", runtime_c() / "simd", "-I",
         runtime_c() / "include", source, "-o", program],
        check=True, timeout=120,
    )  # fmt: skip
    done = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _calls() -> list[str]:
    return CALLS.strip().splitlines()


def test_every_described_function_is_called_above() -> None:
    named = {call.split()[0] for call in _calls()}
    exist = {name for name in EFFECTS if not name.endswith(("one_by_four_long", "one_by_two_long"))}
    assert named == exist


@pytest.mark.parametrize("core", ["dsp", "dsp_dual", "thumb"])
def test_every_function_that_rows_name_is_described(core: str) -> None:
    """A new one keeps kernels from being divided until it is."""
    assert set(_named(KERNELS[core])) <= set(EFFECTS)


def _named(core: CoreKernels) -> Iterator[str]:
    for row in core.products:
        column = row.column
        if column is None:
            continue
        yield from filter(None, (*column.fill, column.image, column.window))
        for block in row.blocks:
            yield row.name + BLOCK_ENDINGS[block]
        if column.long is not None:
            yield f"{row.name}{BLOCK_ENDINGS[2, 2]}_long"
        for way in column.scaled:
            name = f"{row.name}scaled_{PIXELS[way.pixels]}"
            yield f"{name}_paired" if way.paired else name
            if way.alike:
                yield f"{name}_alike"
        if column.row:
            yield f"{row.name}scaled_{ROW}"
        if column.image:
            yield f"{row.name}scaled_{IMAGE}"
    for taps in core.depthwise:
        yield from (f"{taps.name}{pixels}_{by}" for pixels in taps.scaled for by in (1, 2))
        yield from (f"{taps.name}{by}" for by in taps.strides)
    if core.pools:
        yield "htvm_pool_sums"
    yield from ("htvm_copy", "htvm_fill", "htvm_copy_runs")


@pytest.mark.parametrize("parts", [2, 3])
def test_parts_of_a_call_touch_what_the_whole_does(parts: int) -> None:
    """By the elements said: the division of each call that can be divided into equal parts."""
    divided = 0
    for call in _calls():
        whole = _said(call)
        how = whole.division
        if how is None or whole.loops[how.loop] % (parts * how.multiple):
            continue
        divided += 1
        name, arguments = _numbers(call)
        each = whole.loops[how.loop] // parts
        assert int(arguments[how.argument]) == whole.loops[how.loop]
        part = _said(" ".join([name, *arguments[: how.argument], str(each),
                               *arguments[how.argument + 1 :]]))  # fmt: skip
        for place, steps in whole.writes.items():
            if name.startswith("htvm_band") and place == 2:
                continue  # pairs of columns: each core has its own
            moved = [steps.get(how.loop, 0) * each * number for number in range(parts)]
            written = _elements(part, part.writes[place])
            assert {at + first for at in written for first in moved} == _elements(whole, steps)
    assert divided > 1
