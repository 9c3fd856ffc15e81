"""The operators of chains are compared row by row, and the first wrong row is named."""

from __future__ import annotations

import functools
import json
import random
import re
from collections.abc import Mapping
from types import SimpleNamespace

import pytest

import htvm
from htvm.aot.chains import chains_in
from htvm.aot.row_calls import RowMaker
from htvm.aot.steps import CpuKernel
from htvm.build_options import BuildOptions, Input
from htvm.compiled import Compiled
from htvm.errors import SimulationError
from htvm.firmware.build import build_rv32
from htvm.inputs import seeded_inputs
from htvm.pipeline import compile_model
from htvm.tools.cli.app import main
from htvm.tools.verification.observe import ObservableMachine
from htvm.tools.verification.rows import made_rows, rows_of
from htvm.tools.verification.types import Verification
from htvm.tools.verification.verify import verify
from patterns.ops.moves.pad import Pad
from tests.aot.chains.networks import chained_network
from tests.reference.interpreter import interpret
from tests.verification.probe import Array, broken


@functools.cache
def chained(seed: int, way: Input = "kept", target: str = "generic.cpu") -> Compiled:
    """A network with as little memory as possible."""
    options = BuildOptions(memory="least", input=way)
    return compile_model(chained_network(seed), target, options)


def verified(work: Compiled) -> Verification:
    return verify(work, seeded_inputs(work.source.inputs))


@functools.cache
def values_of(work: Compiled) -> Mapping[str, Array]:
    """All tensors, by the interpreter of the tests, which shares no code with the reference."""
    inputs = seeded_inputs(work.source.inputs)
    return interpret(work.retargeted.model.module, inputs).tensors


def makers_of(kernel: CpuKernel) -> tuple[RowMaker, ...]:
    assert kernel.rows is not None
    return kernel.rows.makers


def with_wrong_row(work: Compiled, maker: RowMaker, row: int, byte: int) -> Compiled:
    """The same, where a byte of one row is wrong once it is made."""
    wrong = f"    if (y == {row}) {{\n        to[{byte}] ^= 5; /* wrong */\n    }}\n"

    def change(text: str) -> str:
        body = re.search(rf"^static int32_t {maker.function}\(\w+ \*c\)\n.*?^}}", text, re.M | re.S)
        assert body is not None
        end = text.rindex("    return 0;", body.start(), body.end())
        return text[:end] + wrong + text[end:]

    return broken(work, "cpu_source", change)


@pytest.mark.parametrize(
    ("seed", "way", "target"),
    [
        (1, "kept", "generic.cpu"),
        (3, "streamed", "generic.cpu"),
        (1, "overwritten", "siracusa.cpu"),
    ],
)
def test_every_operator_of_a_chain_is_compared(seed: int, way: Input, target: str) -> None:
    work = chained(seed, way, target)
    found = verified(work)
    assert found.equal and found.contained and "tensors of chains row by row" in str(found)
    nodes, values = work.retargeted.model.graph.nodes, values_of(work)
    by_step = {step.layer: step for step in found.steps}
    for kernel in chains_in(work.cpu_kernels):
        members = {part.layer: part for part in by_step["+".join(kernel.layers)].members}
        for layer in kernel.layers:
            assert members[layer].elements == values[layer].size or isinstance(nodes[layer].op, Pad)
        assert [part.different for part in members.values()] == [0] * len(members)


def check_wrong_rows(work: Compiled, kernel: CpuKernel) -> int:
    """Make one byte of one row wrong, of each function that makes rows; return their number."""
    rng, values = random.Random(0), values_of(work)
    makers = [maker for maker in makers_of(kernel) if maker.tensor in values]  # no sums of rows
    for maker in makers:
        tensor = values[maker.tensor]
        _, rows, width, channels = tensor.shape
        y, x, c = (rng.randrange(size) for size in (rows, width, channels))
        own = kernel.params[maker.parameter][0].startswith("strip_")
        left = maker.start if own else 0  # rows that only pass by have no padding
        result = verified(with_wrong_row(work, maker, y, left + x * maker.pixel + c))
        found = result.difference
        assert found is not None and found.row is not None
        assert (found.layer, found.tensor, found.place) == (maker.layer, maker.tensor, "cpu")
        assert found.axes == ("n", "oy", "ox", "K") and found.element == (0, y, x, c)
        assert (found.row.number, found.row.rows, found.row.rows_different) == (y, rows, 1)
        assert found.expected == tensor[found.element] and found.different == 1
        assert int(found.value) & 0xFF == (int(tensor[found.element]) & 0xFF) ^ 5
        assert found.where is not None and found.where.function == maker.function
        assert "/* wrong */" in found.where.text
        assert f"layer {maker.layer}" in str(result).splitlines()[0]
        assert f"  row      {y} of {rows}, made by {maker.function}" in str(result)
    return len(makers)


def test_the_first_wrong_row_of_each_operator_is_named() -> None:
    work = chained(3)
    (kernel, _) = chains_in(work.cpu_kernels)
    assert check_wrong_rows(work, kernel) == 3


@pytest.mark.slow
@pytest.mark.parametrize("way", ["kept", "overwritten", "streamed"])
def test_the_first_wrong_row_of_each_function_is_named(way: Input) -> None:
    work = chained(1, way)
    assert sum(check_wrong_rows(work, kernel) for kernel in chains_in(work.cpu_kernels)) >= 10


def test_a_wrong_kernel_of_rows_is_found_at_its_own_line() -> None:
    """One channel's bias is wrong, in all rows; what reads these rows is wrong, too."""
    work = chained(3)
    wrong = "bias[(t1 + ki_1)] + ((t1 + ki_1) == 6) * 4000"
    name = r"(void rows3_op_2_row\(.*?)bias\[\(t1 \+ ki_1\)\]"
    found = verified(
        broken(
            work, "cpu_source", lambda text: re.sub(name, rf"\1{wrong}", text, count=1, flags=re.S)
        )
    ).difference
    assert found is not None
    assert (found.layer, found.element[0], found.element[3]) == ("op_2", 0, 6)
    assert found.expected == values_of(work)["op_2"][found.element]
    assert found.row is not None and found.row.rows_different > 1
    assert found.where is not None and found.where.function == "rows3_op_2_row"


def test_the_command_names_the_row(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    work = chained(3)
    wrong = with_wrong_row(work, makers_of(chains_in(work.cpu_kernels)[0])[0], 2, 2)
    module = htvm.Module(wrong, "rv32", build_rv32(wrong.program, wrong.target.soc))
    monkeypatch.setattr("htvm.build", lambda *_, **__: module)
    monkeypatch.setattr("htvm.tools.cli.arguments.open_model", lambda *_: work.source)
    arguments = ["verify", "rows3.tflite", "--target", "generic.cpu", "--memory", "least"]
    assert main([*arguments, "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["difference"]["row"]["number"] == 2 and data["difference"]["layer"] == "op_1"
    assert [part["different"] > 0 for part in data["steps"][0]["members"]] == [True, True, True]


def test_rows_that_are_not_made_are_no_equal_rows() -> None:
    """Without this, those behind a call that never comes would not be compared."""
    work = chained(1)
    inputs = seeded_inputs(work.source.inputs)
    machine = ObservableMachine(work.program, work.target.soc, inputs, {})
    rows = rows_of(work, machine, values_of(work))
    observed = SimpleNamespace(seen=SimpleNamespace(returns=((7, bytes(1 << 16)),)))
    with pytest.raises(SimulationError, match="was not made in its turn"):
        made_rows(rows, observed)  # type: ignore[arg-type]


@pytest.mark.parametrize("target", ["cortex_m4", "cortex_m0plus", "cortex_m55"])
def test_the_c_of_other_cores_is_compared_row_by_row(target: str) -> None:
    """Assembly for those cores is plain C on the simulated one."""
    work = chained(3, target=target)
    found = verified(work)
    assert found.equal and found.contained
    assert "its C was executed by the RV32IMC host" in str(found)
    (kernel, *_) = chains_in(work.cpu_kernels)
    maker = makers_of(kernel)[-1]
    wrong = verified(with_wrong_row(work, maker, 1, 2)).difference
    assert wrong is not None and wrong.row is not None
    assert (wrong.row.number, wrong.layer) == (1, maker.layer)
