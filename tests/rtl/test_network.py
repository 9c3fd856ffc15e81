"""The kernels of a generated network, timed by the simulator and by the RTL."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from htvm.firmware.machine import BARE
from tests.rtl.core import RtlRun, assert_same, build_bench

pytestmark = pytest.mark.rtl


def test_kernels_of_a_network(tmp_path: Path) -> None:
    """DS-CNN, the whole inference: convolution, depthwise, pointwise, pool, dense, softmax.

    The RTL's memory is that of the bare machine, so the network is built for a SoC that has its
    L2 and simulator registers there.
    """
    from byoc_dory.soc.registry import resolve
    from htvm import zoo
    from htvm.build_options import BuildOptions
    from htvm.firmware.build import build_rv32
    from htvm.pipeline import compile_model
    from htvm.sim.iss import run_elf

    compiled = compile_model(zoo.ds_cnn(), "generic.cpu", BuildOptions())
    generic = resolve("generic.cpu").soc
    assert BARE.trace is not None
    soc = replace(
        generic,
        name="bare",
        memories=(replace(generic.memory("L2"), base=BARE.ram[0][0], size=BARE.ram[0][1]),),
        sim=replace(generic.sim, putchar=BARE.putchar, exit=BARE.exit, trace=BARE.trace),
    )
    built = build_rv32(compiled.program, soc)
    assert built.firmware is not None
    rng = np.random.default_rng(1)
    pokes = {
        symbol.address: rng.integers(0, 256, symbol.size, np.uint8).tobytes()
        for name, symbol in built.firmware.symbols.items()
        if name.startswith("htvm_run_input_")
    }
    assert pokes
    bench = build_bench(built.compiler.cache)
    rtl = RtlRun(bench, built.path, tmp_path, pokes)
    iss = run_elf(built.path, BARE, pokes=pokes, compiler=built.compiler)
    # A begin and an end for the run and for every kernel.
    assert len(iss.marks) == 2 + 2 * len(compiled.program.steps) >= 2 + 2 * 3
    assert_same(rtl, iss)
