"""Golden C of what TVM compiles: each group of operators, on one core and shared by several."""

from __future__ import annotations

import pytest

from htvm.aot.cpu import CpuCode, compile_cpu
from htvm.aot.parallel import Cores
from tests.generated.golden import check_golden
from tests.generated.operators import GROUPS, module_of

DEFAULT = ("convolution_shift", "convolution_tflite", "dense", "sums", "softmaxes")
"""Groups whose unscheduled kernels are kept as well."""

SHARED = ("convolution_tflite", "convolutions_rare", "dense", "pools", "movement", "softmaxes")
"""Groups whose kernels for several cores are kept."""

SIMD = ("convolution_tflite", "convolution_shift", "convolutions_rare", "dense", "sums")
"""Groups whose kernels for a core with SIMD are kept."""


def text_of(code: CpuCode) -> str:
    """All kernels, and the constants their calls pass as comments."""
    constants = "".join(
        f"/* constant: {c.name}[{c.data.size}], {c.data.dtype}: {c.comment} */\n"
        for _, c in sorted(code.constants.items())
    )
    return "\n".join([constants, *(kernel.source.strip() + "\n" for kernel in code.kernels)])


@pytest.mark.parametrize("group", GROUPS)
def test_scheduled_kernels(group: str, update_golden: bool) -> None:
    code = compile_cpu(module_of(*GROUPS[group]), "net")
    check_golden(f"cpu/{group}.c", text_of(code), update_golden)


@pytest.mark.parametrize("group", DEFAULT)
def test_default_kernels(group: str, update_golden: bool) -> None:
    code = compile_cpu(module_of(*GROUPS[group]), "net", kernels="default")
    check_golden(f"cpu_default/{group}.c", text_of(code), update_golden)


@pytest.mark.parametrize("group", SHARED)
def test_kernels_that_cores_share(group: str, update_golden: bool) -> None:
    code = compile_cpu(module_of(*GROUPS[group]), "net", cores=Cores(8, 4_096, 1_024))
    assert any(kernel.headers for kernel in code.kernels)
    check_golden(f"cpu_shared/{group}.c", text_of(code), update_golden)


@pytest.mark.parametrize("group", SIMD)
def test_kernels_with_intrinsics(group: str, update_golden: bool) -> None:
    code = compile_cpu(module_of(*GROUPS[group]), "net", simd="corev")
    assert any("htvm_intrinsics.h" in kernel.headers for kernel in code.kernels)
    check_golden(f"cpu_simd/{group}.c", text_of(code), update_golden)
