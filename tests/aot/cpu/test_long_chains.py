"""Chains of operators that use their operands several times: building them takes linear time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tvm import relax, te

from byoc_dory.layers import OnnxRequant
from htvm.aot import cpu
from htvm.aot.cpu import compile_cpu
from patterns.ops.convert import Convert, TableLookup
from patterns.ops.moves.concat import Concat
from patterns.ops.onnxruntime.binary import OnnxAdd
from patterns.ops.onnxruntime.rounding import float_scale
from tests.aot.cpu import native
from tests.reference.interpreter import interpret

SHAPE = (1, 4, 3, 3)


def chain(length: int, *, converts: bool) -> Any:
    """Sums of two tensors, one after the other, each converted to another scale if asked."""
    rng = np.random.default_rng(length)
    builder = relax.BlockBuilder()
    params = [relax.Var(name, relax.TensorType(SHAPE, "int8")) for name in ("x", "y")]
    with builder.function("main", params):
        with builder.dataflow():
            value = params[0]
            for at in range(length):
                pair = [float_scale(float(scale)) for scale in rng.uniform(0.4, 0.9, 2)]
                requant = OnnxRequant((pair[0][0], pair[1][0]), (pair[0][1], pair[1][1]), 1, (2, 3))
                value = OnnxAdd(requant).write(builder, [value, params[1]], f"add_{at}")
                if converts:
                    factor = float_scale(float(rng.uniform(0.6, 1.4)))
                    convert = Convert(OnnxRequant((factor[0],), (factor[1],), -1), (-100, 127), 4)
                    value = convert.write(builder, [value], f"convert_{at}")
            value = builder.emit_output(value)
        builder.emit_func_output(value)
    return builder.get()


def tables(length: int) -> Any:
    """Tables one after the other, each a kernel of its own."""
    rng = np.random.default_rng(length)
    builder = relax.BlockBuilder()
    value = relax.Var("x", relax.TensorType(SHAPE, "int8"))
    with builder.function("main", [value]):
        with builder.dataflow():
            for at in range(length):
                table = rng.integers(-128, 128, 256).astype(np.int8)
                value = TableLookup(table, zero_point=0).write(builder, [value], f"table_{at}")
            value = builder.emit_output(value)
        builder.emit_func_output(value)
    return builder.get()


@pytest.mark.parametrize("converts", [False, True], ids=["sums", "sums and conversions"])
def test_a_chain_is_exact_and_its_code_grows_linearly(
    converts: bool, tmp_path: Path, compiler: Any
) -> None:
    short, long = (compile_cpu(chain(length, converts=converts), "chain") for length in (4, 8))
    sizes = [sum(len(kernel.source) for kernel in code.kernels) for code in (short, long)]
    assert sizes[1] < 3 * sizes[0]
    rng = np.random.default_rng(1)
    inputs = [rng.integers(-128, 128, SHAPE).astype(np.int8) for _ in range(2)]
    loaded = native.library([long], tmp_path, native.trapping(compiler))
    found = native.run(long, loaded, dict(zip("xy", inputs, strict=True)))
    expected = interpret(chain(8, converts=converts), inputs).outputs
    np.testing.assert_array_equal(found[0], expected[0])


def test_layers_of_one_geometry_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered: list[str] = []
    lower = cpu.lower

    def counted(func: Any, symbol: str, *given: Any, **more: Any) -> Any:
        lowered.append(symbol)
        return lower(func, symbol, *given, **more)

    monkeypatch.setattr(cpu, "lower", counted)
    code = compile_cpu(tables(6), "chain")
    assert len(lowered) == 1 and len(code.kernels) == 6
    for number, kernel in enumerate(code.kernels):
        (layer,) = kernel.layers
        assert layer == f"table_{number}" and f" {layer}: " in kernel.source
        assert kernel.symbol == f"chain_table_{number}" and f"{kernel.symbol}(" in kernel.source


def test_the_network_is_walked_once_not_once_for_each_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    walks: list[Any] = []
    walk = cpu.tvm_ffi.structural_walk
    monkeypatch.setattr(
        cpu.tvm_ffi, "structural_walk", lambda body, *rest: (walks.append(body), walk(body, *rest))
    )
    counts = []
    for length in (3, 6):
        walks.clear()
        code = compile_cpu(tables(length), "chain")
        assert len(code.calls) == length
        counts.append(sum(isinstance(body, relax.SeqExpr) for body in walks))
    assert counts[0] == counts[1]


def test_many_branches_are_joined_by_a_kernel_of_its_own(tmp_path: Path, compiler: Any) -> None:
    """What is computed of each element before it would else make one kernel without bound."""
    rng, branches = np.random.default_rng(5), 40
    builder = relax.BlockBuilder()
    source = relax.Var("x", relax.TensorType(SHAPE, "int32"))
    with builder.function("main", [source]):
        with builder.dataflow():
            parts = []
            for at in range(branches):
                clipped = relax.op.clip(source, -at - 1, 2 * at)
                parts.append(builder.emit(relax.op.astype(clipped, "int8"), f"part_{at}"))
            value = builder.emit_output(Concat(1).write(builder, parts, "joined"))
        builder.emit_func_output(value)
    module = builder.get()
    code = compile_cpu(module, "net")
    assert [kernel.operators for kernel in code.kernels].count(("concat",)) == 1
    loaded = native.library([code], tmp_path, native.trapping(compiler))
    data = rng.integers(-128, 128, SHAPE).astype(np.int32)
    found = native.run(code, loaded, {"x": data})
    np.testing.assert_array_equal(found[0], interpret(module, [data]).outputs[0])


@pytest.mark.parametrize("count", [16, 17, 40, 300])
def test_joined_parts_are_told_apart_by_halves(count: int) -> None:
    parts = [te.placeholder((1 + at % 3, 2), "int8") for at in range(count)]
    source = str(te.create_prim_func([*parts, Concat(0).body(*parts)]))
    nested = max(line.count("if_then_else") for line in source.splitlines())
    assert nested == count - 1  # one comparison less than parts, however they are nested
    assert deepest(source) <= 16 + max(0, count // 16).bit_length()


def deepest(source: str) -> int:
    """How many conditions the deepest one is under, itself included."""
    depth = most = 0
    opened = []
    for at, letter in enumerate(source):
        if letter == "(":
            opened.append(source[:at].endswith("if_then_else"))
            depth += opened[-1]
            most = max(most, depth)
        elif letter == ")" and opened:
            depth -= opened.pop()
    return most
