"""The TFLite models in the integer form, against TFLite Micro: every layer, every golden input."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import relax
from tvm.relax.frontend.tflite import from_tflite

import htvm
from htvm.vm import linked
from patterns.reading.read import graph_of
from tests.models import MODELS, golden, layer_outputs, model_path
from tests.reference.interpreter import interpret

# Operators of the file that TVM's importer, and hence the integer form, does not change in kind.
_INSERTED = {"pad"}


@cache
def loaded(name: str) -> htvm.Model:
    return htvm.load(model_path(name))


@pytest.mark.parametrize("name", MODELS)
def test_every_layer_equals_tflite_micro(name: str) -> None:
    model = loaded(name)
    wanted = layer_outputs(name)
    run = interpret(model.module, [golden(name).inputs[0]])
    layers = [node.name for node in graph_of(model.module).in_order if node.kind not in _INSERTED]
    assert len(layers) == len(wanted)
    for index, layer in enumerate(layers):
        np.testing.assert_array_equal(run.tensors[layer], wanted[index], err_msg=layer)


@pytest.mark.parametrize("name", MODELS)
def test_tvms_import_of_a_file_is_the_same_network(name: str) -> None:
    import tflite

    model = tflite.Model.GetRootAsModel(model_path(name).read_bytes(), 0)
    of_module = htvm.load(from_tflite(model))
    assert tvm_ffi.structural_equal(of_module.module, loaded(name).module)


@pytest.mark.rotating(1)
@pytest.mark.parametrize("name", MODELS)
def test_tvm_equals_tflite_micro_on_all_goldens(name: str) -> None:
    case = golden(name)
    executable = linked(relax.build(loaded(name).module, "llvm"))
    machine = relax.VirtualMachine(executable, tvm.cpu())
    for number, sample in enumerate(case.inputs):
        made = machine["main"](tvm.runtime.tensor(sample)).numpy()
        np.testing.assert_array_equal(made, case.outputs[number], err_msg=f"golden {number}")


@pytest.mark.parametrize("name", MODELS)
def test_interpreter_equals_tflite_micro_on_all_goldens(name: str) -> None:
    case = golden(name)
    for number, sample in enumerate(case.inputs[1:], start=1):
        run = interpret(loaded(name).module, [sample])
        np.testing.assert_array_equal(
            run.outputs[0], case.outputs[number], err_msg=f"golden {number}"
        )
        if case.logits is not None:
            (last,) = (node.inputs[0] for node in graph_of(loaded(name).module).in_order[-1:])
            np.testing.assert_array_equal(run.tensors[last], case.logits[number])


@pytest.mark.parametrize("name", MODELS)
def test_every_layer_knows_its_place_in_the_file(name: str) -> None:
    model = loaded(name)
    layers = [node.name for node in graph_of(model.module).in_order if node.kind not in _INSERTED]
    assert list(model.sources) == layers
    assert model.sources[layers[-1]] == model.outputs[0].name


def test_interface_is_that_of_the_file() -> None:
    model = loaded("pretrainedResnet_quant")
    (source,), (result,) = model.inputs, model.outputs
    assert (source.name, source.shape, source.dtype) == ("input_1_int8", (1, 32, 32, 3), "int8")
    assert (source.scale, source.zero_point) == (1.0, -128)
    assert (result.name, result.shape) == ("Identity_int8", (1, 10))
    assert (result.scale, result.zero_point) == (1 / 256, -128)
    assert model.scheme == "tflite"
    assert model.source == "model.tflite"
