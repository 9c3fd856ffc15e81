"""``--io int8`` and ``--data``: the interface of a network, and what retargeting is fitted to."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from tvm import relax

import htvm
from byoc_dory.errors import InputError, UnsupportedError
from byoc_dory.layers import MulShift
from htvm import zoo
from htvm.inputs import seeded_inputs
from htvm.tools.cli.app import main
from htvm.tools.cli.arguments import open_model
from patterns.ops.dense import Dense
from patterns.ops.float32.quantize import Quantize
from patterns.ops.integer.rescale import Rescale
from patterns.reading.read import graph_of
from tests.reference.interpreter import interpret


@pytest.fixture(scope="module")
def digits() -> htvm.Model:
    return zoo.named("zoo:digits")


@pytest.mark.rotating(1)
@pytest.mark.parametrize("target", ["diana.digital", "diana.cpu"])
def test_an_int8_interface_computes_the_same_without_its_conversions(
    digits: htvm.Model, target: str
) -> None:
    real = htvm.build(digits, target)
    plain = htvm.build(digits, target, io="int8")
    (given,), (made,) = plain.compiled.source.inputs, plain.compiled.source.outputs
    assert (given.name, given.dtype) == (digits.inputs[0].name, "int8")
    assert (made.name, made.dtype) == (digits.outputs[0].name, "int8")
    x = np.abs(np.asarray(seeded_inputs(digits.inputs)[0])) / 3
    assert given.scale is not None and given.zero_point is not None
    q = np.clip(np.rint(x / np.float32(given.scale)) + given.zero_point, -128, 127).astype(np.int8)
    ran, also = real.run(x.astype(np.float32)), plain.run(q)
    assert made.scale is not None and made.zero_point is not None
    centred = also.outputs[0].astype(np.int32) - made.zero_point
    assert np.array_equal(ran.outputs[0], centred.astype(np.float32) * np.float32(made.scale))
    assert ran.cycles is not None and also.cycles is not None and also.cycles < ran.cycles
    kinds = set(plain.compiled.dispatch.kinds.values())
    assert not kinds & {"quantize", "dequantize"}


def test_the_header_has_scale_and_zero_point(tmp_path: Path, digits: htvm.Model) -> None:
    assert main(
        ["compile", "zoo:digits", "-t", "diana.cpu", "--io", "int8", "-o", str(tmp_path / "d")]
    ) == 0  # fmt: skip
    text = next((tmp_path / "d").rglob("digits.h")).read_text(encoding="utf-8")
    (info,) = htvm.with_integer_io(digits).inputs
    said = dict(
        re.findall(r"#define DIGITS_INPUT_0_(SCALE|ZERO_POINT) \(?(\S+?)f?\)?$", text, re.M)
    )
    assert np.float32(said["SCALE"]) == np.float32(info.scale or 0)
    assert int(said["ZERO_POINT"]) == info.zero_point == -128
    assert "digits_run(const int8_t *input_0, int8_t *output_0);" in text


def test_an_int8_network_stays_as_it_is(digits: htvm.Model) -> None:
    model = zoo.named("zoo:ds_cnn")
    assert htvm.with_integer_io(model) is model
    once = htvm.with_integer_io(digits)
    assert htvm.with_integer_io(once) is once


def test_data_are_what_retargeting_is_fitted_to(
    tmp_path: Path, digits: htvm.Model, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "samples.npy"
    rng = np.random.default_rng(1)
    np.save(path, rng.random((12, 1, 8, 8)).astype(np.float32))
    model = open_model("zoo:digits", data=path)
    assert model.calibration is not None and len(model.calibration["image"]) == 12
    plain = open_model("zoo:digits", io="int8", data=path)
    assert plain.calibration is not None and plain.calibration["image"].dtype == np.int8
    command = ["run", "zoo:digits", "-t", "diana.digital", "--json"]
    cycles = []
    for more in ([], ["--data", str(path)], ["--data", str(path), "--io", "int8"]):
        assert main([*command, *more]) == 0
        found = json.loads(capsys.readouterr().out)
        cycles.append(found["cycles"])
    assert cycles[2] < cycles[1]


def test_wrong_data_are_refused_before_anything_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("htvm.pipeline.build", lambda *_, **__: pytest.fail("built"))
    monkeypatch.setattr("htvm.build", lambda *_, **__: pytest.fail("built"), raising=False)
    files = {
        "shape.npy": np.zeros((3, 9), np.float32),
        "nan.npy": np.full((3, 1, 8, 8), np.nan, np.float32),
        "none.npy": np.zeros((0, 1, 8, 8), np.float32),
    }
    for name, array in files.items():
        np.save(tmp_path / name, array)
    np.savez(tmp_path / "names.npz", a=files["shape.npy"], b=files["shape.npy"])
    (tmp_path / "text.npy").write_text("no arrays", encoding="utf-8")
    for name in (*files, "names.npz", "text.npy", "missing.npy"):
        assert main(["run", "zoo:digits", "--data", str(tmp_path / name)]) == 2, name
        said = capsys.readouterr().err
        assert said.startswith("htvm: error: ") and ("data" in said or name in said), said
    assert main(["run", "zoo:digits", "--io", "int16"]) == 2
    assert "'int16' is not one of 'source', 'int8'" in capsys.readouterr().err


def test_a_network_that_needs_its_interface_says_so() -> None:
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 16), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            # Both read the reals.
            a = Quantize(0.5, 3).write(bb, [x], "a")
            b = Quantize(0.25, 0).write(bb, [x], "b")
            outputs = [bb.emit_output(part) for part in (a, b)]
        bb.emit_func_output(relax.Tuple(outputs))
    info = htvm.TensorInfo("x", (1, 16), "float32")
    results = tuple(htvm.TensorInfo(name, (1, 16), "int8", 0.5, 0) for name in "ab")
    model = htvm.Model("two", graph_of(bb.finalize()), (info,), results, "a test", "shift")
    with pytest.raises(UnsupportedError, match="io='source'"):
        htvm.with_integer_io(model)
    with pytest.raises(InputError, match="int16"):
        htvm.build(model, io="int16")  # type: ignore[arg-type]


def test_samples_go_through_the_rescaling_of_an_input() -> None:
    """An input of bytes that is rescaled, not only moved, as files in PULP's integers have them."""
    rescale = Rescale(np.asarray([[3]], "int32"), np.asarray([[5 - 700]], "int32"), 2, (-128, 127))
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 20), "uint8"))
    with bb.function("main", [x]):
        with bb.dataflow():
            inner = rescale.write(bb, [x], "rescale_0")
            weight = np.random.default_rng(0).integers(-99, 99, (5, 20)).astype("int8")
            dense = Dense(weight, np.zeros(5, "int32"), MulShift((3,), (9,)))
            out = bb.emit_output(dense.write(bb, [inner], "dense_0"))
        bb.emit_func_output(out)
    data = np.random.default_rng(1).integers(0, 256, (6, 1, 20)).astype(np.uint8)
    infos = (htvm.TensorInfo("x", (1, 20), "uint8"),), (htvm.TensorInfo("y", (1, 5), "int8"),)
    model = htvm.Model("bytes", graph_of(bb.finalize()), *infos, calibration={"x": data})
    plain = htvm.with_integer_io(model)
    (info,) = plain.inputs
    assert (info.name, info.dtype, info.scale) == ("x", "int8", None)
    assert plain.calibration is not None
    for sample, inside in zip(data, plain.calibration["x"], strict=True):
        whole, part = interpret(model.module, [sample]), interpret(plain.module, [inside])
        np.testing.assert_array_equal(whole.outputs[0], part.outputs[0])
