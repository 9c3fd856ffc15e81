"""Passes in somebody else's pipeline: partitioned modules run, are saved, and are built."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import ir, relax
from tvm.relax import op as R
from tvm.relax.dpl import is_op, wildcard

import htvm
import htvm.relax
from byoc_dory.options import TilingOptions
from htvm.errors import InputError, IntegerFormError, PolicyError, TargetError, UnsupportedError
from htvm.relax.library import region_library
from htvm.vm import linked
from patterns.byoc.contract import CONTRACT, is_region, region_of
from tests.relax import networks

RNG = np.random.default_rng(5)
IMAGE = RNG.normal(0, 1, (1, 3, 8, 8)).astype("float32")


def mixed() -> ir.IRModule:
    """Two functions, none called main; one has reals that nothing here reads in its middle."""

    def middle(net: networks.Writer, x: networks.Quantized) -> Any:
        x = net.conv(x, 8, 3)
        sums = net.emit(R.cumsum(net.dequantized(x), axis=1))
        x = net.quantized(sums, 0.1, 8)
        return net.classifier(net.conv(x, 8, 3), 4)

    def whole(net: networks.Writer, x: networks.Quantized) -> Any:
        return net.classifier(net.conv(x, 16, 3), 4)

    builder = relax.BlockBuilder()
    for name, write in (("middle", middle), ("whole", whole)):
        function = networks.network(write, IMAGE.shape, 3)["main"]
        builder.add_func(function.with_attr("global_symbol", name), name)
    return builder.get()


def run(module: ir.IRModule, function: str, *inputs: Any) -> np.ndarray:
    machine = relax.VirtualMachine(linked(tvm.compile(module, "llvm")), tvm.cpu())
    result: np.ndarray = machine[function](*map(tvm.runtime.tensor, inputs)).numpy()
    return result


@pytest.fixture(scope="module")
def partitioned() -> ir.IRModule:
    return tvm.transform.Sequential([htvm.relax.Partition("diana")])(mixed())


def regions(module: ir.IRModule) -> dict[str, list[str]]:
    """Return the kinds of layers of each region."""
    return {
        str(var.name_hint): [layer.op for layer in region_of(str(var), function).layers]
        for var, function in module.functions.items()
        if is_region(function)
    }


def test_every_function_is_partitioned_around_what_nobody_reads(
    partitioned: ir.IRModule,
) -> None:
    found = regions(partitioned)
    assert {name.split("_region")[0] for name in found} == {"middle", "whole"}
    assert sorted(kind for kinds in found.values() for kind in kinds) == [
        "conv2d", "conv2d", "conv2d", "dense", "dense",
    ]  # fmt: skip
    assert "R.cumsum" in partitioned["middle"].script(show_meta=False)


def run_alone(
    module: ir.IRModule, functions: tuple[str, ...], x: np.ndarray, folder: Path
) -> list[np.ndarray]:
    """Run a saved library in a process that finds neither this project nor a compiler."""
    program = tvm.compile(relax.transform.RunCodegen()(module), "llvm")
    program.export_library(str(folder / "library.so"), fcompile=htvm.relax.link)
    np.save(folder / "x.npy", x)
    script = (
        "import sys, numpy as np, tvm\n"
        "from tvm import relax\n"
        "machine = relax.VirtualMachine(tvm.runtime.load_module('library.so'), tvm.cpu())\n"
        "for name in sys.argv[1:]:\n"
        "    np.save(name, machine[name](tvm.runtime.tensor(np.load('x.npy'))).numpy())\n"
        "assert not {'htvm', 'patterns', 'byoc_dory'} & set(sys.modules)\n"
    )
    alone = {"TVM_DEVICE_BACKEND_AUTOLOAD": "0", "PATH": "", "HOME": str(folder)}
    command = [sys.executable, "-I", "-c", script, *functions]
    subprocess.run(command, cwd=folder, env=alone, check=True, timeout=120)
    return [np.load(folder / f"{name}.npy") for name in functions]


def test_a_saved_library_runs_where_neither_htvm_nor_a_compiler_is(
    partitioned: ir.IRModule, tmp_path: Path
) -> None:
    """Its results are those of the retargeted module, compiled by TVM alone."""
    names = ("middle", "whole")
    retargeted = htvm.relax.Retarget("diana")(mixed())
    for name, found in zip(names, run_alone(partitioned, names, IMAGE, tmp_path), strict=True):
        np.testing.assert_array_equal(found, run(retargeted, name, IMAGE))


def network() -> ir.IRModule:
    return networks.network(
        lambda net, x: net.classifier(net.add(net.conv(x, 3, 1), x), 4), IMAGE.shape, 1
    )


def test_a_pattern_that_is_left_out_stays_on_the_cpu() -> None:
    ours = htvm.relax.registered_patterns()
    kinds = [
        kind
        for kinds in regions(htvm.relax.Partition("diana")(network())).values()
        for kind in kinds
    ]
    assert kinds == ["conv2d", "add", "dense"]
    fewer = [entry for entry in ours if entry.name != "htvm.conv2d"]
    found = regions(htvm.relax.Partition("diana", patterns=fewer)(network()))
    assert [kind for kinds in found.values() for kind in kinds] == ["add", "dense"]


def test_a_pattern_of_ones_own_takes_its_operators_first() -> None:
    own = relax.transform.FusionPattern("demo.mean", is_op("relax.mean")(wildcard()))
    patterns = [own, *htvm.relax.registered_patterns()]
    found = htvm.relax.Partition("diana", patterns=patterns)(network())
    codegens = [
        str(function.attrs["Codegen"])
        for function in found.functions.values()
        if function.attrs and "Codegen" in function.attrs
    ]
    assert sorted(set(codegens)) == ["demo", "htvm_diana_cores"]
    with pytest.raises(UnsupportedError, match="region of the code generator 'demo'"):
        htvm.load(htvm.relax.Partition("diana", patterns=[own])(network()))


def test_composites_tell_what_they_compute() -> None:
    """TVM's own pass with the registered patterns is enough for another code generator."""
    module = htvm.load("zoo:resnet8").module
    composed = relax.transform.FuseOpsByPattern(
        htvm.relax.registered_patterns(), bind_constants=True
    )(module)
    composites = [
        function.attrs
        for function in composed.functions.values()
        if function.attrs and "Composite" in function.attrs
    ]
    kinds = [str(attributes["Composite"]) for attributes in composites]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        "htvm.conv2d": 9, "htvm.add": 3, "htvm.dense": 1,
    }  # fmt: skip
    for attributes in composites:
        assert str(attributes["htvm.kind"]) in ("Convolution", "Add", "Dense")
        assert '"requant":{"class":"Shift"' in str(attributes["htvm.fields"])


def test_a_partitioned_module_is_built_with_its_layers_in_their_places() -> None:
    model = htvm.load("zoo:toyadmos")
    found = htvm.relax.Partition("diana")(model.module)
    built = htvm.build(found, target="diana", platform="host")
    assert built.placement == htvm.build(model, target="diana", platform="host").placement
    with pytest.raises(TargetError, match="partitioned for 'diana', not for 'siracusa'"):
        htvm.build(found, target="siracusa", platform="host")
    with pytest.raises(PolicyError, match="have their places"):
        htvm.build(found, target="diana", platform="host", policy="latency")


def _changed(module: ir.IRModule, **attributes: Any) -> ir.IRModule:
    """Return the module with attributes of its regions changed."""
    made = module.clone()
    for var, function in module.functions.items():
        if is_region(function):
            made.update_func(var, function.with_attrs(attributes))
    return made


@pytest.mark.parametrize("use", [relax.transform.RunCodegen(), htvm.load])
def test_regions_that_are_not_as_they_were_written_are_refused(
    use: Any, partitioned: ir.IRModule
) -> None:
    with pytest.raises(IntegerFormError, match=f"contract {CONTRACT + 1}.*function '"):
        use(_changed(partitioned, **{"htvm.contract": CONTRACT + 1}))
    with pytest.raises(IntegerFormError, match="changed after the partitioning"):
        use(_changed(partitioned, **{"htvm.target": "siracusa"}))
    edited = partitioned.clone()
    for var, function in partitioned.functions.items():
        if is_region(function):
            edited.update_func(var, _clipped(function))
    with pytest.raises(IntegerFormError, match="changed after the partitioning"):
        use(edited)


def _clipped(function: relax.Function) -> Any:
    """Return a region's function whose composites clip at other bounds."""

    def other(call: Any) -> Any:
        clips = getattr(call.op, "name", "") == "relax.clip"
        return relax.Call(call.op, [call.args[0], *_BOUNDS], call.attrs) if clips else call

    return tvm_ffi.structural_map(function, (ir.Call, other))


_BOUNDS = R.clip(relax.Var("x", relax.TensorType((1,), "int32")), 0, 1).args[1:]


def test_regions_of_two_targets_cannot_be_in_one_library() -> None:
    functions = [
        function
        for tiling in (TilingOptions(), TilingOptions(l1_budget=4096))
        for function in htvm.relax.Partition("diana", tiling=tiling)(network()).functions.values()
        if is_region(function)
    ]
    with pytest.raises(UnsupportedError, match="diana with different options"):
        region_library(functions)


def test_a_partitioned_module_may_be_partitioned_again(partitioned: ir.IRModule) -> None:
    """Its regions stay as they are, also in passes that make dataflow blocks."""
    again = htvm.relax.Partition("diana")(partitioned)
    assert regions(again) == regions(partitioned)
    with pytest.raises(IntegerFormError, match="a region of 'diana', not of 'siracusa'"):
        htvm.relax.Partition("siracusa")(partitioned)


def test_attributes_of_functions_and_modules_are_kept() -> None:
    module = network().with_attr("mine", 3)
    main = module["main"].with_attr("other", "text")
    module.update_func(module.get_global_var("main"), main)
    for made in (htvm.relax.Partition("diana")(module), htvm.relax.LowerToC("diana")(module)):
        assert int(made.attrs["mine"]) == 3 and str(made["main"].attrs["other"]) == "text"


def test_functions_may_have_any_names() -> None:
    """C gets identifiers made from them."""
    function = network()["main"].with_attr("global_symbol", "my net-2")
    module = ir.IRModule({"my net-2": function})
    found = relax.transform.RunCodegen()(htvm.relax.Partition("diana")(module))
    retargeted = htvm.relax.Retarget("diana")(module)
    expected = run(retargeted, "my net-2", IMAGE)
    np.testing.assert_array_equal(run(found, "my net-2", IMAGE), expected)


def test_attributes_that_are_missing_are_named(partitioned: ir.IRModule) -> None:
    module = partitioned.clone()
    for var, function in partitioned.functions.items():
        if is_region(function):
            module.update_func(var, function.without_attr("htvm.content"))
    for use in (relax.transform.RunCodegen(), htvm.load):
        with pytest.raises(IntegerFormError, match="lacks htvm.content.*function '"):
            use(module)


def test_weights_in_a_tuple_stay_with_tvm() -> None:
    module = relax.transform.LiftTransformParams()(network())
    htvm.relax.Partition("diana")(module)


@pytest.mark.parametrize("patterns", [7, [7], "htvm.dense", ["htvm.dense"]])
def test_patterns_that_are_none_are_refused(patterns: Any) -> None:
    with pytest.raises(InputError, match="no list of patterns"):
        htvm.relax.Partition("diana", patterns=patterns)


def test_options_that_nobody_knows_are_refused(partitioned: ir.IRModule) -> None:
    with pytest.raises(TargetError, match="no option 'opt_level'"):
        relax.transform.RunCodegen({"htvm_diana_cores": {"opt_level": 3}})(partitioned)


def test_functions_without_quantizations_stay_as_they_are(caplog: Any) -> None:
    """Whatever they are of: reals of a size that is not known, integers, checks of types."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((tvm.tirx.Var("n", "int64"), 4), "float32"))
    with builder.function("main", [x]):
        y = builder.emit(R.nn.relu(x))
        y = builder.match_cast(y, relax.TensorType((2, 4), "float32"))
        builder.emit_func_output(builder.emit(R.argmax(y, 1)))
    module = builder.get()
    found = htvm.relax.Partition("diana")(module)
    assert found["main"].script() == relax.transform.ConvertToDataflow()(module)["main"].script()
    assert not caplog.records


def test_reals_behind_the_last_quantization_stay_with_tvm() -> None:
    module = networks.network(
        lambda net, x: net.emit(R.nn.softmax(net.classifier(net.conv(x, 8, 3), 4))), IMAGE.shape, 1
    )
    found = htvm.relax.Partition("diana")(module)
    assert sorted(regions(found).values()) == [["conv2d"], ["dense"]]
    assert "R.nn.softmax" in found["main"].script(show_meta=False)


def test_private_functions_are_put_where_they_are_called() -> None:
    inner = network()["main"].without_attr("global_symbol")
    builder = relax.BlockBuilder()
    part = builder.add_func(inner, "part")
    x = relax.Var("x", relax.TensorType(IMAGE.shape, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            out = builder.emit_output(builder.emit(relax.Call(part, [x])))
        builder.emit_func_output(out)
    found = htvm.relax.Partition("diana")(builder.get())
    alone = htvm.relax.Partition("diana")(network())
    assert regions(found) == regions(alone)
    image = np.asarray(IMAGE)
    codegen = relax.transform.RunCodegen()
    np.testing.assert_array_equal(
        run(codegen(found), "main", image), run(codegen(alone), "main", image)
    )


def test_sizes_that_are_not_known_are_refused() -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((tvm.tirx.Var("n", "int64"), 4), "int8"))
    one = relax.const(np.float32(1)), relax.const(np.int8(0))
    with builder.function("entry", [x]):
        with builder.dataflow():
            y = builder.emit(R.nn.relu(builder.emit(R.dequantize(x, *one))))
            y = builder.emit_output(R.quantize(y, *one, out_dtype="int8"))
        builder.emit_func_output(y)
    with pytest.raises(UnsupportedError, match="dimension 0.*parameter 'x' of function 'entry'"):
        htvm.relax.Partition("diana")(builder.get())
    with pytest.raises(IntegerFormError, match="no Relax function 'main'"):
        htvm.load(builder.get())


def test_targets_without_accelerators_are_refused() -> None:
    with pytest.raises(TargetError, match="no accelerators"):
        htvm.relax.Partition("cortex_m4")


def test_tags_of_targets_name_socs() -> None:
    tag = tvm.target.Target("htvm/diana")
    assert regions(htvm.relax.Partition(tag)(network())) == regions(
        htvm.relax.Partition("diana")(network())
    )


def test_a_function_becomes_one_call_of_its_program() -> None:
    module = htvm.load("zoo:toyadmos").module
    lowered = htvm.relax.LowerToC("cortex_m4")(module)
    assert "R.call_dps_packed" in lowered["main"].script()
    x = RNG.integers(-128, 128, (1, 640)).astype("int8")
    np.testing.assert_array_equal(run(lowered, "main", x), run(module, "main", x))


def test_an_import_of_tvm_loads_little() -> None:
    """TVM calls the entry point while it is imported."""
    script = (
        "import sys, tvm\n"
        "from htvm.relax.autoload import register\n"
        "before = set(sys.modules)\n"
        "register()\n"
        "print(*sorted(set(sys.modules) - before))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(Path(htvm.__file__).parents[1])},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded = done.stdout.split()
    assert not [name for name in loaded if name.startswith(("patterns.", "byoc_dory.soc", "onnx"))]


@pytest.mark.slow
@pytest.mark.parametrize("target", ["diana", "siracusa"])
@pytest.mark.parametrize("write", [networks.mobilenet_v2, networks.resnet18, networks.lstm])
def test_networks_compute_what_their_c_does(write: Any, target: str, tmp_path: Path) -> None:
    module = write()
    found = tvm.transform.Sequential([htvm.relax.Partition(target)])(module)
    shape = [int(size) for size in module["main"].params[0].ty.shape]
    x = RNG.normal(0, 1, shape).astype("float32")
    built = htvm.build(module, target=target, platform="host")
    (result,) = run_alone(found, ("main",), x, tmp_path)
    np.testing.assert_array_equal(result, built.run([x]).outputs[0])
    assert any(place != "cpu" for place in built.placement.values())
