"""No two functions or arrays of a program have one name, whatever its layers are called."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htvm
from byoc_dory.emit.text import INTERFACE, Symbols, part_name
from byoc_dory.layers import Shift
from byoc_dory.region import Constant
from htvm.aot import entry
from htvm.aot.cpu import compile_cpu
from htvm.aot.parallel import Cores
from htvm.aot.program import Assembly, assemble
from htvm.aot.steps import ModelCall, Value
from htvm.errors import ModelError
from htvm.firmware.paths import runtime_c
from htvm.inputs import seeded_inputs
from htvm.model import model_name
from patterns.ops.convolution import Window, conv2d_of
from tests.aot import tiny
from tests.aot.cpu import native
from tests.aot.cpu.test_shared_kernels import NEAR, RUNTIME
from tests.generated.operators import module_of

FIELD = Path(__file__).parents[4] / "shared" / "models" / "field"
KERNELS = (1, 3, 5)


def network(names: tuple[str, ...]) -> htvm.Model:
    """Convolutions of these names, with kernels of different sizes, so that none share code."""

    def write(bb: Any, x: Any) -> list[Any]:
        rng = np.random.default_rng(3)
        for number, name in enumerate(names):
            size = KERNELS[number % len(KERNELS)]
            weight = rng.integers(-128, 128, (8, 8, size, size)).astype(np.int8)
            bias = rng.integers(-500, 500, 8).astype(np.int32)
            window = Window(padding=(size // 2,) * 4)
            x = conv2d_of(weight, bias, window, Shift(9)).write(bb, [x], name)
        return [x]

    return htvm.load(module_of((((1, 8, 8, 8), "int8"),), write), name="net")


NAMES = {
    "of the entry function": ("run", "arena", "run_in"),
    "of an array": ("a_weights", "a", "a_weight"),
    "of an array, the other way round": ("a", "a_weights", "a_packed"),
    "of a conversion": ("a_to_core", "a", "a_from_core"),
    "of another layer, spelled otherwise": ("a.b", "a_b", "a:b"),
}


@pytest.mark.rotating(4)
@pytest.mark.parametrize("target", ["diana.digital", "siracusa"])
@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_a_layer_may_have_the_name(names: tuple[str, ...], target: str) -> None:
    module = htvm.build(network(names), target, "host")
    inputs = seeded_inputs(module.model.inputs, 5)
    for found, wanted in zip(module.run(inputs).outputs, module.reference(inputs), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_parts_of_kernels_are_called_like_no_layer(tmp_path: Path, compiler: Any) -> None:
    """The functions that cores run are numbered, as are kernels and layers."""
    module = network(("a", "a_0", "a_1", "a_part0", "a_part1")).module
    code = compile_cpu(module, "net", cores=Cores(8, NEAR, 1024))
    assert any(part_name(kernel.symbol, 0) in kernel.source for kernel in code.kernels)
    source = tmp_path / "kernels.c"
    source.write_text(RUNTIME % NEAR + native.source_of(code), encoding="utf-8")
    folders = (runtime_c() / "include", runtime_c() / "simd")
    compiler.compile_host([source], tmp_path / "a.so", folders, native.STRICT, shared=True)


@pytest.mark.rotating(2)
@pytest.mark.parametrize("target", ["siracusa.cluster", "snitch_ita.cluster"])
@pytest.mark.parametrize("name", ["streaming_tcn_cache", "squeeze_excite_three_channels"])
def test_several_kernels_of_one_layer_have_parts(name: str, target: str) -> None:
    path = FIELD / name / "model.onnx"
    if not path.is_file():
        pytest.skip("../shared/models/field is not there")
    module = htvm.build(path, target, "host")
    inputs = seeded_inputs(module.model.inputs, 2)
    for found, wanted in zip(module.run(inputs).outputs, module.reference(inputs), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_the_names_of_the_interface_are_known() -> None:
    """Whatever a template declares behind the model's name, no layer gets."""
    folder = Path(entry.__file__).with_name("templates")
    texts = [path.read_text(encoding="utf-8") for path in folder.glob("*.[ch].jinja")]
    code = [re.sub(r"(?s:/\*.*?\*/)|#include.*", "", text) for text in texts]
    found = {word for text in code for word in re.findall(r"\{\{ name \}\}_(\w+)", text)}
    assert "run" in found and found <= INTERFACE


def test_functions_of_inputs_and_outputs_are_not_names_of_layers() -> None:
    symbols = Symbols("net")
    assert symbols.function("input_0") == "net_input_0_2"
    assert symbols.function("input_0_in") == "net_input_0_in_2"
    assert symbols.function("input_0_quantize") == "net_input_0_quantize_2"
    assert symbols.function("quantize_0") == "net_quantize_0"


def test_macros_are_not_names_of_layers() -> None:
    symbols = Symbols("NET")
    assert symbols.function("STEPS") == "NET_steps"
    assert symbols.function("Steps") == "NET_Steps"


def test_a_thing_keeps_its_name() -> None:
    symbols = Symbols("net")
    first = symbols.function_of(("x", "to_core"), "x_to_core")
    assert symbols.function("x_to_core") == "net_x_to_core_2"
    assert symbols.function_of(("x", "to_core"), "x_to_core") == first == "net_x_to_core"


@pytest.mark.parametrize("driver", ["cluster", "dla", "htvm"])
def test_a_model_is_not_called_like_a_driver(driver: str) -> None:
    assert model_name(driver) == f"model_{driver}"


def test_two_things_of_one_name_are_refused() -> None:
    """An emitter that is not ours may call an array like the function of another layer."""
    region = tiny.region("m")
    prologue, layer = region.kernels
    array = Constant(prologue.symbol, np.zeros(4, np.int8), "like the prologue")
    clashing = replace(region, kernels=(prologue, replace(layer, constants=(array,))))
    with pytest.raises(ModelError, match=f"two functions or arrays are called '{array.name}'"):
        assemble(
            Assembly(
                name="m",
                inputs=[tiny.Info("x", (32,))],
                outputs=[tiny.Info("y", (32,))],
                calls=[ModelCall("r", ("x",), (Value("y", (32,), "int8"),))],
                results=["y"],
                regions={"r": clashing},
            )
        )
