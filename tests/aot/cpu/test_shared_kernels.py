"""Kernels for several cores, compiled natively, compute what they compute on one.

The runtime beneath them executes the cores in a chosen order, and fills the near memory with
rubbish before every copy into it: a kernel that reads what another core writes, or what nobody
has brought, is wrong in one order or the other.
"""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from byoc_dory.layers import Shift
from htvm.aot.codegen_c import PARALLEL_HEADER
from htvm.aot.cpu import compile_cpu
from htvm.aot.parallel import Cores
from htvm.firmware.paths import runtime_c
from patterns.ops.dense import Dense
from patterns.ops.max_pool import MaxPool
from patterns.ops.moves.pad import Pad
from patterns.ops.tflite.averages import AveragePool
from patterns.ops.tflite.binary import AddFactors, TfliteAdd
from patterns.ops.tflite.softmax import TfliteSoftmax
from tests.aot.cpu import native
from tests.aot.cpu.modules import bias_of, int8, module, tflite
from tests.aot.cpu.test_kernels import CONVOLUTIONS, DEPTHWISE, conv_case

NEAR = 1 << 15

RUNTIME = """
#include "htvm_parallel.h"
#include <string.h>
uint32_t cores_count, cores_backwards, kernels_run;
static uint32_t filled;
static _Alignas(16) uint8_t near_memory[%d];
void htvm_parallel_run(htvm_parallel_kernel_t kernel, const void *args)
{
    kernels_run++;
    for (uint32_t i = 0; i < cores_count; i++) {
        kernel(args, cores_backwards ? cores_count - 1u - i : i, cores_count);
    }
}
void *htvm_parallel_memory(uint32_t offset)
{
    if (!filled) {
        memset(near_memory, 0x5A, sizeof near_memory);
        filled = 1;
    }
    return near_memory + offset;
}
void htvm_parallel_copy(void *to, const void *from, uint32_t bytes) { memcpy(to, from, bytes); }
void htvm_parallel_wait(void) { filled = 0; }
"""


def kernels() -> dict[str, tuple]:
    """Modules and inputs of every kind of kernel."""
    rng = np.random.default_rng(11)
    found = {}
    for scheme in ("tflite", "shift"):
        for name, sizes in CONVOLUTIONS.items():
            found[f"{scheme} {name}"] = conv_case(**sizes, scheme=scheme)
        for name, sizes in DEPTHWISE.items():
            case = conv_case(**sizes, k=sizes["c"], groups=sizes["c"], scheme=scheme)
            found[f"{scheme} depthwise {name}"] = case
    sizes = dict(y=9, x=9, c=4, k=6, filter=(3, 3), stride=(1, 1), padding=(2, 2, 2, 2))
    found["dilated"] = conv_case(**sizes, scheme="tflite", dilation=2)
    found["channels first"] = conv_case(**sizes, scheme="shift", layout="NCHW")
    found["grouped"] = conv_case(**{**sizes, "k": 8}, scheme="tflite", groups=4)
    cases = {name: (case.module, case.inputs) for name, case in found.items()}

    def case(name: str, build, *shapes: tuple[int, ...]) -> None:
        inputs = {f"x{n}": int8(rng, *shape) for n, shape in enumerate(shapes)}
        built = module({key: value.shape for key, value in inputs.items()}, build)
        cases[name] = (built, inputs)

    weight, bias = int8(rng, 13, 33), bias_of(rng, 13)
    case("dense", lambda bb, v: Dense(weight, bias, Shift(9)).write(bb, [v], "dense_0"), (1, 33))
    requant = tflite(rng, 13, -7)
    case("rows", lambda bb, v: Dense(weight, bias, requant).write(bb, [v], "dense_0"), (7, 33))
    total = AddFactors.from_scales((0.03, 0.7, 0.4), (-128, 5, 127))
    shape = (1, 3, 5, 6)
    case("add", lambda bb, v, w: TfliteAdd(total).write(bb, [v, w], "add_0"), shape, shape)
    windows = (3, 2), (2, 2)
    shape = (1, 7, 6, 5)
    case(
        "average",
        lambda bb, v: AveragePool(*windows, (1, 0, 1, 1)).write(bb, [v], "pool_0"),
        shape,
    )
    case("max", lambda bb, v: MaxPool(*windows).write(bb, [v], "pool_0"), shape)
    case("pad", lambda bb, v: Pad(-7, (1, 2, 3, 1)).write(bb, [v], "pad_0"), shape)
    case(
        "softmax", lambda bb, v: TfliteSoftmax.of_scale(1 / 16).write(bb, [v], "softmax_0"), (1, 12)
    )
    case(
        "softmax of rows",
        lambda bb, v: TfliteSoftmax.of_scale(1 / 16).write(bb, [v], "softmax_0"),
        (40, 12),
    )
    return cases


@pytest.fixture(scope="module")
def one_core(tmp_path_factory, compiler):
    """Every kernel as it runs on one core: its outputs."""
    codes = {
        name: compile_cpu(built, f"net{number}")
        for number, (name, (built, _)) in enumerate(kernels().items())
    }
    loaded = native.library(codes.values(), tmp_path_factory.mktemp("one"), compiler)
    return {
        name: native.run(codes[name], loaded, inputs) for name, (_, inputs) in kernels().items()
    }


@pytest.mark.rotating(1)
@pytest.mark.parametrize(
    ("near", "simd"), [(NEAR, ""), (300, ""), (0, ""), (NEAR, "corev"), (0, "dsp"), (0, "thumb")]
)
def test_the_cores_compute_what_one_does(one_core, near, simd, tmp_path, compiler) -> None:
    codes, shared = {}, 0
    cases = dict(list(kernels().items())[:: 1 if near == NEAR else 5])
    for number, (name, (built, _)) in enumerate(cases.items()):
        cores = Cores(8, near, 1024)
        codes[name] = compile_cpu(built, f"net{number}", cores=cores, simd=simd)
        shared += sum(PARALLEL_HEADER in kernel.headers for kernel in codes[name].kernels)
    assert shared >= 0.9 * sum(len(code.kernels) for code in codes.values())
    source = tmp_path / "kernels.c"
    source.write_text(RUNTIME % NEAR + native.source_of(*codes.values()), encoding="utf-8")
    out = compiler.compile_host(
        [source],
        tmp_path / "kernels.so",
        (runtime_c() / "include", runtime_c() / "simd"),
        native.STRICT,
        shared=True,
    )
    loaded = ctypes.CDLL(str(out))
    for count, backwards in ((8, 0), (8, 1), (3, 1), (1, 0)):
        for symbol, value in (("cores_count", count), ("cores_backwards", backwards)):
            ctypes.c_uint32.in_dll(loaded, symbol).value = value
        for name, (_, inputs) in cases.items():
            for result, wanted in zip(
                native.run(codes[name], loaded, inputs), one_core[name], strict=True
            ):
                np.testing.assert_array_equal(result, wanted, err_msg=f"{name}, {count} cores")
    assert ctypes.c_uint32.in_dll(loaded, "kernels_run").value >= 4 * 0.9 * shared


def test_operands_that_do_not_fit_stay_where_they_are() -> None:
    built, _ = kernels()["dense"]
    (kernel,) = compile_cpu(built, "net", cores=Cores(8, 300, 1024)).kernels
    assert "close to them" in kernel.schedule and "all operands" not in kernel.schedule
    (kernel,) = compile_cpu(built, "net", cores=Cores(8, 0, 1024)).kernels
    assert "operands where they are" in kernel.schedule
    (kernel,) = compile_cpu(built, "net").kernels
    assert kernel.headers == () and "cores" not in kernel.source
