"""Layers of equal geometry share one function, which is passed what they differ in."""

from __future__ import annotations

import functools
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import htvm
from byoc_dory.definition import Definition, Slot
from byoc_dory.layers import MulShift, Requant, Shift
from byoc_dory.options import TilingOptions
from byoc_dory.sharing import Function, share_functions
from htvm.aot.entry import model_sources
from htvm.build_options import BuildOptions
from htvm.compiled import Compiled
from htvm.inputs import seeded_inputs
from htvm.pipeline import compile_model
from htvm.tools.verification.verify import verify
from patterns.ops.convolution import Window, conv2d_of
from tests.generated.operators import module_of

TARGETS = ("diana.digital", "snitch_ita.cluster", "generic.cpu")
KINDS = ("layer", "cpu")
LAYERS = ("first", "second", "third", "fourth", "fifth")


def network(target: str, *, alike: bool = False) -> htvm.Model:
    """Five convolutions of one shape; the last has another shift.

    Their weights and biases differ, or are alike: all that the layers read is then equal.
    """

    def requant(number: int) -> Requant:
        if target.startswith("snitch"):
            return MulShift((30 + number * (not alike),), (14,), (1 << 13,))
        return Shift(10 if name == LAYERS[-1] else 9)

    def write(bb: Any, x: Any) -> list[Any]:
        nonlocal name
        for number, name in enumerate(LAYERS):
            rng = np.random.default_rng(11 if alike else (11, number))
            weight = rng.integers(-128, 128, (8, 8, 3, 3)).astype(np.int8)
            bias = rng.integers(-500, 500, 8).astype(np.int32)
            window = Window(padding=(1, 1, 1, 1))
            x = conv2d_of(weight, bias, window, requant(number)).write(bb, [x], name)
        return [x]

    name = ""
    return htvm.load(module_of((((1, 8, 8, 8), "int8"),), write), name="net")


@functools.cache
def compiled(target: str) -> Compiled:
    # Under DIANA's other schedule the results stay at different places in L1.
    tiling = TilingOptions(schedule="published" if target.startswith("diana") else "overlapped")
    return compile_model(network(target), target, BuildOptions(tiling=tiling))


@pytest.mark.parametrize("target", TARGETS)
def test_equal_constants_are_stored_once(target: str) -> None:
    made = compile_model(network(target, alike=True), target, BuildOptions())
    constants = made.program.constants
    assert len({each.data.tobytes() for each in constants}) == len(constants)
    (weights,) = (each for each in constants if each.data.size >= 8 * 8 * 9)
    assert f"of {LAYERS[0]}" in weights.comment
    result = verify(made, seeded_inputs(made.source.inputs))
    assert result.equal, str(result)


@pytest.mark.parametrize("target", TARGETS)
def test_layers_of_one_shape_share_a_function(target: str) -> None:
    made = compiled(target)
    steps = [step for step in made.program.steps if step.layer in LAYERS]
    convolutions = [step for step in steps if step.kind in KINDS and "pad" not in step.symbol]
    assert [step.layer for step in convolutions] == list(LAYERS)
    assert len({step.symbol for step in convolutions}) == len(LAYERS)
    functions = [step.function for step in convolutions]
    assert len(set(functions)) < len(LAYERS), functions
    shared = max(set(functions), key=functions.count)
    assert shared.startswith("net_shared_")
    texts = model_sources(made.program)
    kernels = texts["net_cpu.c" if target == "generic.cpu" else "net_layers.c"]
    assert len(re.findall(rf"\b{shared}\(", kernels)) == 1
    assert texts["net_kernels.h"].count(shared) == 1
    comment = kernels[: kernels.index(f" {shared}(")].rsplit("/*", 1)[1]
    sharing = [step.layer for step in convolutions if step.function == shared]
    assert f"shared by {len(sharing)} layers: {', '.join(sharing)}" in comment
    assert texts["net.c"].count(f"{shared}(") == len(sharing)


@pytest.mark.rotating(1)
@pytest.mark.parametrize("target", TARGETS)
def test_each_layer_is_verified_by_its_own_name(target: str) -> None:
    """All compute what the reference does, though they run the same code."""
    made = compiled(target)
    result = verify(made, seeded_inputs(made.source.inputs))
    assert result.equal, str(result)
    compared = [step.layer for step in result.steps if step.compared]
    assert set(LAYERS) <= set(compared)


# ------------------------------------------------------------------------------ what is passed


class Kernel:
    """A kernel of two slots, a place in L1 and a multiplier."""

    def __init__(self, symbol: str, place: int, mult: int, fixed: bool = False) -> None:
        self.symbol = symbol
        slots = (
            Slot("L1_IN", "uint32_t", str(place)),
            Slot("mult", "int32_t", str(mult), fixed),
            Slot("weights", "const uint8_t *", f"{symbol}_weights"),
        )
        body = (
            "${signature}\n{\n    enum { ${enumerators} };\n"
            "    f(in, ${weights}, ${L1_IN}, ${mult});\n}\n"
        )
        self.definition = Definition(
            "gemm", (symbol,), ("gemm 4x4",), "void", ("int8_t *in",), body, slots
        )
        self.source = self.definition.text(symbol)
        self.prototype = self.definition.prototype(symbol)


def test_a_function_of_one_layer_has_constants() -> None:
    kernel = Kernel("m_a", 16, 3)
    assert share_functions([kernel], "m").functions == (
        Function("m_a", kernel.source, "void m_a(int8_t *in)"),
    )
    assert kernel.source == (
        "/* m_a: gemm 4x4 */\nvoid m_a(int8_t *in)\n{\n    enum { L1_IN = 16 };\n"
        "    f(in, m_a_weights, L1_IN, 3);\n}\n"
    )


def test_what_differs_is_passed_and_nothing_else() -> None:
    found = share_functions([Kernel("m_a", 16, 3), Kernel("m_b", 16, 4)], "m")
    (function,) = found.functions
    assert function.prototype == (
        "void m_shared_gemm_1(int8_t *in, int32_t mult, const uint8_t *weights)"
    )
    assert function.source == (
        "/* gemm 4x4\n * shared by 2 layers: m_a, m_b */\n" + function.prototype + "\n{\n"
        "    enum { L1_IN = 16 };\n    f(in, weights, L1_IN, mult);\n}\n"
    )
    passed = {name: [slot.value for slot in found.values[name]] for name in ("m_a", "m_b")}
    assert passed == {"m_a": ["3", "m_a_weights"], "m_b": ["4", "m_b_weights"]}


def test_an_enumeration_without_enumerators_is_left_out() -> None:
    (function,) = share_functions([Kernel("m_a", 16, 3), Kernel("m_b", 32, 3)], "m").functions
    assert "enum" not in function.source and "f(in, weights, l1_in, 3);" in function.source


def test_a_static_initialiser_keeps_its_numbers() -> None:
    found = share_functions(
        [Kernel("m_a", 16, 3, fixed=True), Kernel("m_b", 16, 4, fixed=True)], "m"
    )
    assert [function.symbol for function in found.functions] == ["m_a", "m_b"]


def test_names_that_are_taken_are_not_given_again() -> None:
    kernels = [Kernel("m_a", 16, 3), Kernel("m_b", 16, 4)]
    (function,) = share_functions(kernels, "m", {"m_shared_gemm_1"}).functions
    assert function.symbol == "m_shared_gemm_2"


def test_other_texts_are_other_functions() -> None:
    kernels = [Kernel("m_a", 16, 3), Kernel("m_b", 16, 4)]
    kernels[1].definition = replace(kernels[1].definition, comment_lines=("gemm 4x8",))
    assert len(share_functions(kernels, "m").functions) == 2
