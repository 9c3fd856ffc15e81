"""Inputs that come row by row: same numbers, rows out of order, and what is refused."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest

import htvm
from htvm.build_options import BuildOptions
from htvm.compiled import Compiled
from htvm.errors import TargetError, UnsupportedError
from htvm.firmware.build import build_host
from patterns.op import TensorType
from patterns.ops.moves.reshape import Reshape, Transpose
from patterns.ops.tflite.binary import AddFactors, TfliteAdd
from patterns.reading.building import GraphBuilder
from tests.aot.chains.networks import chained_network, inputs_of

DRIVER = """
#include "htvm_host.h"

#include <stdio.h>
#include <string.h>

#include "rows3.h"

static const int8_t image[ROWS3_INPUT_0_ELEMENTS] = {@INPUT@};
static _Alignas(16) int8_t whole[ROWS3_OUTPUT_0_ELEMENTS];
static _Alignas(16) int8_t output[ROWS3_OUTPUT_0_ELEMENTS];
static int8_t line[ROWS3_ROW_ELEMENTS + 1];

/* A row at an odd address, which is gone after the call. */
static int32_t hand_over(int32_t row)
{
    memcpy(line + 1, image + row * (int32_t)ROWS3_ROW_ELEMENTS, ROWS3_ROW_ELEMENTS);
    const int32_t code = rows3_row(row, line + 1, output);
    memset(line, 0x55, sizeof line);
    return code;
}

static int wrong(int32_t row)
{
    int8_t before[sizeof output];
    memcpy(before, output, sizeof output);
    const int32_t code = rows3_row(row, image, output);
    return code != ROWS3_ERROR_ROW || memcmp(before, output, sizeof output) != 0;
}

int main(void)
{
    const int32_t last = (int32_t)ROWS3_ROWS - 1;
    int failed = rows3_run(image, whole) != 0;
    failed |= wrong(last) << 1; /* there is nothing after the last row */
    for (int32_t row = 0; row < 5; row++) {
        failed |= (hand_over(row) != 0) << 2;
    }
    failed |= (wrong(4) || wrong(6) || wrong(-1) || wrong(last + 1)) << 3;
    failed |= (hand_over(5) != 0) << 4; /* a wrong row changes nothing */
    memset(output, 0x33, sizeof output);
    for (int32_t row = 0; row <= last; row++) { /* begins anew */
        failed |= (hand_over(row) != 0) << 5;
    }
    failed |= (memcmp(whole, output, sizeof output) != 0) << 6;
    failed |= (wrong(last) || wrong(last + 1)) << 7;
    printf("%d\\n", failed);
    return 0;
}
"""


def test_rows_out_of_order_are_errors_and_change_nothing() -> None:
    model = chained_network(3)
    options = BuildOptions(memory="least", input="streamed")
    compiled = Compiled(model, "generic.cpu", options)
    (values,) = inputs_of(model, 1)
    driver = DRIVER.replace("@INPUT@", ", ".join(map(str, values.ravel())))
    built = build_host(compiled.program, compiled.target.soc, extra_sources={"main.c": driver})
    found = subprocess.run([built.path, "."], capture_output=True, text=True, check=True)
    assert found.stdout == "0\n"


def test_red_zones_hold_around_a_streamed_input() -> None:
    model = chained_network(3)
    module = htvm.build(model, "generic.cpu", "rv32", memory="least", input="streamed")
    found = module.verify(inputs_of(model, 1))
    assert found.difference is None and found.stray is None


def test_an_export_takes_rows(tmp_path: object) -> None:
    model = chained_network(3)
    module = htvm.build(model, "generic.cpu", "host", memory="least", input="streamed")
    module.export(f"{tmp_path}/export")
    opened = htvm.open(f"{tmp_path}/export", trust=True)
    inputs = inputs_of(model, 1)
    np.testing.assert_array_equal(opened.run(inputs).outputs[0], module.run(inputs).outputs[0])


def _refused(graph: GraphBuilder, result: str) -> str:
    model = htvm.load(graph.graph([result]).module, name="whole")
    with pytest.raises(UnsupportedError, match="cannot come row by row") as refused:
        assert Compiled(model, "generic.cpu", BuildOptions(input="streamed")).program
    return str(refused.value)


def test_an_operator_that_needs_the_whole_input_is_named() -> None:
    graph = GraphBuilder([("x", TensorType((1, 6, 4, 2)))])
    graph.apply(Transpose((0, 2, 1, 3)), ["x"], "turn")
    graph.apply(Reshape((1, 48)), ["turn"], "flat")
    assert "'turn' needs the whole of what it reads" in _refused(graph, "flat")


def test_two_inputs_are_refused() -> None:
    graph = GraphBuilder([(name, TensorType((1, 6, 4, 2))) for name in "xy"])
    factors = AddFactors.from_scales((0.02, 0.03, 0.04), (0, 0, 0))
    graph.apply(TfliteAdd(factors, (-128, 127)), ["x", "y"], "sum")
    assert "not one map" in _refused(graph, "sum")


def test_accelerators_take_whole_inputs() -> None:
    with pytest.raises(TargetError, match="option 'input'"):
        Compiled(chained_network(3), "diana", BuildOptions(input="streamed"))
