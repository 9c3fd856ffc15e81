"""Helper: a model made by hand: three kernels, a region of two, a reshape, a constant.

x int8[1,4,8] -> scale (CPU, constant gain, int32 workspace) -> a
a -> region "r" (prologue, layer; internal buffers) -> b
b -> reshape -> c [32];  out_0 = c,  out_1 = a + c (CPU; reads output 0 back)
"""

from __future__ import annotations

from functools import partial

import numpy as np

from byoc_dory.layers import Tensor
from byoc_dory.region import Buffer, Constant, Kernel, RegionCode
from htvm.aot.program import Alias, Assembly, ModelCall, Program, Value, assemble
from htvm.aot.steps import CpuKernel
from htvm.model import TensorInfo

Info = partial(TensorInfo, dtype="int8")


def cpu_kernel(
    symbol: str, source: str, prototype: str, workspaces: tuple[int, ...], layers: tuple[str, ...]
) -> CpuKernel:
    """A kernel of which the program needs to know no more."""
    params = tuple((f"workspace_{n}", "int8", (size,)) for n, size in enumerate(workspaces))
    return CpuKernel(symbol, source, prototype, params, 1, workspaces, layers, (), "")


def gain() -> np.ndarray:
    return np.arange(-16, 16, dtype=np.int8)


def bias() -> np.ndarray:
    return np.array([5, -(2**31), 2**31 - 1, 0], np.int32)


def reference(x: np.ndarray) -> list[np.ndarray]:
    """What the program computes, in wrapping int8 arithmetic."""
    a = (x.reshape(32).astype(np.int32) * gain()).astype(np.int8)
    c = (a.astype(np.int32)[::-1] + int(bias()[0])).astype(np.int8)
    return [c, (a.astype(np.int32) + c).astype(np.int8).reshape(1, 4, 8)]


def kernels(name: str) -> list[CpuKernel]:
    scale = f"""\
void {name}_scale(int8_t *x, int8_t *gain, int8_t *out, int32_t *workspace) {{
  for (int32_t i = 0; i < 32; ++i) {{
    workspace[i] = (int32_t)x[i] * (int32_t)gain[i];
  }}
  for (int32_t i = 0; i < 32; ++i) {{
    out[i] = (int8_t)(uint8_t)(uint32_t)workspace[i];
  }}
}}"""
    add = f"""\
int32_t {name}_add(const int8_t *a, const int8_t *b, int8_t *out) {{
  for (int32_t i = 0; i < 32; ++i) {{
    out[i] = (int8_t)(uint8_t)(uint32_t)((int32_t)a[i] + (int32_t)b[i]);
  }}
  return 0;
}}"""
    return [
        cpu_kernel(f"{name}_scale", scale, scale.split(" {")[0], (128,), ("scale_0",)),
        cpu_kernel(f"{name}_add", add, add.split(" {")[0] + ";", (), ("add_0", "relu_0")),
    ]


def region(name: str, fail_with: int = 0) -> RegionCode:
    copy = f"""\
int32_t {name}_r_in(const int8_t *in0, int8_t *out) {{
  for (int32_t i = 0; i < 32; ++i) {{
    out[i] = in0[i];
  }}
  return 0;
}}"""
    layer = f"""\
int32_t {name}_reverse(const int8_t *in0, int8_t *out) {{
  for (int32_t i = 0; i < 32; ++i) {{
    out[i] = (int8_t)(uint8_t)(uint32_t)(in0[31 - i] + {name}_reverse_bias[0]);
  }}
  return {fail_with};
}}"""

    def kernel(source: str, kind: str, inputs: str, outputs: str, *constants: Constant) -> Kernel:
        prototype = next(line for line in source.splitlines() if line.startswith("int32_t"))
        prototype = prototype.split(" {")[0]
        symbol = prototype.split()[1].split("(")[0]
        return Kernel(
            symbol=symbol,
            layer_name="reverse_0",
            kind=kind,  # type: ignore[arg-type]
            source=source,
            prototype=prototype,
            inputs=(inputs,),
            outputs=(outputs,),
            constants=constants,
            layer=None,
            plan=None,
            program=None,
            predicted_cycles=100,
            accelerator="cpu" if kind == "prologue" else "digital",
        )

    return RegionCode(
        name="r",
        kernels=(
            kernel(copy, "prologue", "x", "x_packed"),
            kernel(
                layer,
                "layer",
                "x_packed",
                "y",
                Constant(f"{name}_reverse_bias", bias(), "bias of reverse_0"),
            ),
        ),
        buffers=(Buffer("x_packed", 32), Buffer("never_used", 1000)),
        inputs=(Tensor("x", (8, 1, 4), layout="NHWC"),),
        outputs=(Tensor("y", (32,), layout="C"),),
        headers=(),
    )


def program(name: str = "tiny", fail_with: int = 0) -> Program:
    """The model above, every external symbol prefixed with ``name``; step 2 may fail."""
    return assemble(
        Assembly(
            name=name,
            inputs=[Info("serving/x:0", (1, 4, 8))],
            outputs=[Info("c", (32,)), Info("sum", (1, 4, 8))],
            calls=[
                ModelCall(
                    f"{name}_scale", ("serving/x:0", "gain"), (Value("a", (1, 4, 8), "int8"),), 32
                ),
                ModelCall("region_r", ("a",), (Value("b", (4, 8), "int8"),)),
                Alias("b", Value("c", (32,), "int8")),
                ModelCall(f"{name}_add", ("a", "c"), (Value("sum", (1, 4, 8), "int8"),)),
            ],
            results=["c", "sum"],
            cpu_kernels=kernels(name),
            regions={"region_r": region(name, fail_with)},
            constants={"gain": Constant(f"{name}_gain", gain(), "gain of scale_0")},
        )
    )
