"""Noise of the analog core: a setting from outside, off unless asked for, equal everywhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from byoc_dory.errors import InputError, SimulationError, TargetError
from byoc_dory.layers import Tensor
from byoc_dory.options import TilingOptions
from byoc_dory.region import Region
from byoc_dory.soc.base import Target
from byoc_dory.soc.diana.cores import AnalogCore
from byoc_dory.soc.diana.description import DIANA
from byoc_dory.soc.registry import resolve
from htvm.firmware import host, rv32
from htvm.firmware.paths import runtime_c
from htvm.firmware.socs import machine_of
from htvm.firmware.toolchain import Compiler
from htvm.sim.host import run_host
from htvm.sim.noise import noise_settings
from htvm.sim.rv32 import run_rv32
from tests.byoc_dory.analog import analog_conv
from tests.byoc_dory.program import Case, main_program, make_case, packed
from tests.byoc_dory.test_emit_rv32 import firmware_main

ANALOG = DIANA.accelerator("analog")
assert isinstance(ANALOG, AnalogCore)
TARGET = Target("noisy", DIANA, (ANALOG,))


@pytest.fixture(scope="module")
def case() -> Case:
    rng = np.random.default_rng(2)
    x = Tensor("x", (8, 9, 9))
    first = analog_conv(rng, "first", x, 20, (3, 3), 1, (1, 1, 1, 1))
    second = analog_conv(rng, "second", first.output, 12, (3, 3), 1, (1, 1, 1, 1), (-128, 127))
    region = Region(
        "noisy", (first, second), (Tensor("x", x.shape, layout="NCHW"),),
        (Tensor(second.output.name, second.output.shape, layout="NCHW"),),
    )  # fmt: skip
    return make_case(region, TilingOptions(), "noisy", 1, "analog")


@pytest.fixture(scope="module")
def program(case: Case, tmp_path_factory: pytest.TempPathFactory) -> host.HostProgram:
    folder = tmp_path_factory.mktemp("noise")
    source = folder / "main.c"
    source.write_text(main_program([case]))
    return host.build([source], [], DIANA, folder / "out", Compiler.zig())


def outputs(
    program: host.HostProgram, case: Case, deviation: float = 0.0, seed: int = 0
) -> np.ndarray:
    size = case.outputs[0].size
    settings = noise_settings(TARGET, deviation, seed)
    (raw,) = run_host(program, [packed([case], False)], [size], settings=settings)
    return np.frombuffer(raw, np.int8).reshape(case.outputs[0].shape)


def error(got: np.ndarray, case: Case) -> float:
    return float(np.abs(got.astype(int) - case.outputs[0]).mean())


def test_without_noise_a_run_is_exact(program: host.HostProgram, case: Case) -> None:
    assert noise_settings(TARGET, 0.0, 5) == {}
    np.testing.assert_array_equal(outputs(program, case), case.outputs[0])


def test_noise_follows_deviation_and_seed(program: host.HostProgram, case: Case) -> None:
    little, same, other = (outputs(program, case, 0.2, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(little, same)
    assert (little != other).any()
    much = outputs(program, case, 4.0, 1)
    assert 0 < error(little, case) < error(much, case) / 3


def test_both_platforms_draw_the_same_noise(
    program: host.HostProgram, case: Case, tmp_path: Path
) -> None:
    source = tmp_path / "main.c"
    source.write_text(firmware_main(case))
    firmware = rv32.build_firmware(
        [source, *host.driver_sources(DIANA)],
        [runtime_c() / "soc" / DIANA.driver],
        machine_of(DIANA),
        tmp_path / "out",
        Compiler.zig(),
    )
    result = run_rv32(
        firmware,
        {"in_0": case.inputs[0].tobytes()},
        {"out_0": case.outputs[0].size},
        settings=noise_settings(TARGET, 1.0, 3),
        compiler=Compiler.zig(),
    )
    got = np.frombuffer(result.outputs["out_0"], np.int8).reshape(case.outputs[0].shape)
    np.testing.assert_array_equal(got, outputs(program, case, 1.0, 3))


def test_a_setting_must_be_one(program: host.HostProgram, case: Case) -> None:
    data, size = packed([case], False), case.outputs[0].size
    for register in (0x10000000, ANALOG.registers + 0x3C):
        with pytest.raises(SimulationError, match="cannot set|starting|returned"):
            run_host(program, [data], [size], settings={register: 1})


@pytest.mark.parametrize(
    ("deviation", "seed", "message"),
    [
        (-1.0, 0, "a noise of -1 steps"),
        (float("nan"), 0, "a noise of nan"),
        (1e6, 0, "a noise of 1e"),
        ("loud", 0, "a noise of 'loud'"),
        (1.0, -1, "a seed of -1"),
        (1.0, 1 << 32, "a seed of 4294967296"),
    ],
)
def test_bad_noise(deviation: float, seed: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        noise_settings(TARGET, deviation, seed)


def test_noise_needs_an_array() -> None:
    with pytest.raises(TargetError, match="no in-memory array.*diana.cpu"):
        noise_settings(resolve("diana.cpu"), 1.0, 0)
