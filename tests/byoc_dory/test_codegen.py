"""What `generate` hands to the later stages."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import byoc_dory
from byoc_dory.cost import Cost
from byoc_dory.errors import TargetError, UnsupportedError
from byoc_dory.layers import Layer, Shift, Tensor, conv2d_layer, dense_layer
from byoc_dory.options import TilingOptions
from byoc_dory.region import Region, RegionCode
from byoc_dory.soc.diana.description import DIANA
from tests.byoc_dory.test_emit_native import residual_region

ROOT = Path(__file__).parents[2]


def chain(border: str, names: tuple[str, str] = ("a", "b")) -> Region:
    """Two convolutions, borders in the given layout."""
    x = Tensor("x", (3, 6, 20))
    weight = np.ones((5, 3, 3, 3), np.int8)
    first = conv2d_layer(names[0], x, "t", weight, None, pad=(1, 1, 1, 1), requant=Shift(4))
    second = conv2d_layer(
        names[1], first.output, "y", np.ones((4, 5, 1, 1), np.int8), None, requant=Shift(2)
    )
    ends = (replace(x, layout=border),), (replace(second.output, layout=border),)
    return Region("chain", (first, second), *ends)


PUBLISHED = TilingOptions(schedule="published")


def code_of(
    region: Region, prefix: str = "net", options: TilingOptions | None = None
) -> RegionCode:
    return byoc_dory.generate(region, Cost(DIANA, options or TilingOptions()), prefix)


def test_order_and_wiring_with_conversions() -> None:
    code = code_of(chain("NHWC"), options=PUBLISHED)
    assert [(k.kind, k.inputs, k.outputs) for k in code.kernels] == [
        ("prologue", ("x",), ("x.core",)),
        ("layer", ("x.core",), ("t",)),
        ("layer", ("t",), ("y.core",)),
        ("epilogue", ("y.core",), ("y",)),
    ]
    # Rows of 20 take 32 B; only K maps are stored.
    sizes = {buffer.name: buffer.bytes for buffer in code.buffers}
    assert sizes == {"x.core": 3 * 6 * 32, "t": 5 * 6 * 32, "y.core": 4 * 6 * 32}
    assert code.headers == ("diana_driver.h",)


def test_borders_in_the_accelerators_layout_need_no_conversion() -> None:
    code = code_of(chain("CHW"), options=PUBLISHED)
    assert [(k.kind, k.inputs, k.outputs) for k in code.kernels] == [
        ("layer", ("x",), ("t",)),
        ("layer", ("t",), ("y",)),
    ]
    assert [buffer.name for buffer in code.buffers] == ["t"]


def test_what_stays_in_l1_is_no_argument_and_has_no_buffer_in_l2() -> None:
    code = code_of(chain("NHWC"))
    assert [(k.kind, k.inputs, k.outputs) for k in code.kernels] == [
        ("prologue", ("x",), ("x.core",)),
        ("layer", ("x.core",), ()),
        ("layer", (), ("y.core",)),
        ("epilogue", ("y.core",), ("y",)),
    ]
    assert [buffer.name for buffer in code.buffers] == ["x.core", "y.core"]
    assert code.plan is not None
    assert code.plan.resident == ("t",)
    assert code.plan.cycles == sum(k.predicted_cycles for k in code.kernels if k.kind == "layer")
    # Input and output of each layer are there whole; a conv writes 16 maps of its 5.
    assert code.l1_used == {"net_a": (3 + 16) * 6 * 32, "net_b": (5 + 16) * 6 * 32}
    assert code.plan.l1_peak == 21 * 6 * 32
    first, second = (kernel.plan for kernel in code.kernels if kernel.plan is not None)
    assert first.l1_output == second.l1_inputs[0]


def test_names_become_c_and_stay_distinct() -> None:
    code = code_of(chain("NHWC", ("block/conv", "block:conv")), "my-net")
    symbols = [kernel.symbol for kernel in code.kernels]
    assert symbols[1:3] == ["my_net_block_conv", "my_net_block_conv_2"]
    assert all(symbol.isidentifier() for symbol in symbols) and len(set(symbols)) == len(symbols)
    constants = [constant.name for kernel in code.kernels for constant in kernel.constants]
    assert len(set(constants)) == len(constants) == 2


def test_hostile_names_stay_in_their_comments() -> None:
    code = code_of(chain("NHWC", ("a */ int x; /*", "b\n#error")))
    for kernel in code.kernels:
        head, _, body = kernel.source.partition("*/")
        assert "\n#error" not in kernel.source and "*/" not in head
        assert "int x;" not in body


def test_kernels_carry_what_they_were_made_from() -> None:
    code = code_of(residual_region())
    for kernel in code.kernels:
        assert kernel.predicted_cycles > 0
        assert kernel.prototype.startswith(f"int32_t {kernel.symbol}(")
        assert kernel.prototype.count("const int8_t *in") == len(kernel.inputs)
        assert kernel.prototype.count("int8_t *out") == len(kernel.outputs)
        assert kernel.source.count("{") == kernel.source.count("}")
        assert (kernel.kind == "layer") == (kernel.layer is not None)
        if kernel.layer is not None:
            assert kernel.solution is not None and kernel.program is not None
            assert kernel.layer_name == kernel.layer.name == kernel.program.layer
            assert kernel.solution.objective == kernel.predicted_cycles


def test_equal_layers_share_a_solution() -> None:
    rng = np.random.default_rng(0)
    v = Tensor("v", (64,))
    weight = rng.integers(-5, 5, (64, 64)).astype(np.int8)
    first = dense_layer("f", v, "t", weight, None, requant=Shift(4))
    second = dense_layer("g", first.output, "y", weight, None, requant=Shift(4))
    region = Region("r", (first, second), (v,), (second.output,))
    options = TilingOptions(l1_budget=100, schedule="published")
    code = byoc_dory.generate(region, Cost(DIANA, options), "p")
    assert code.kernels[0].solution is code.kernels[1].solution
    assert code.kernels[0].solution.tile.k < 64


def test_vectors_need_no_particular_source_layout() -> None:
    layer: Layer = dense_layer(
        "f", Tensor("v", (5,)), "y", np.ones((3, 5), np.int8), None, requant=Shift(0)
    )
    sources = set()
    for layout in ("C", "NHWC", "NCHW"):
        ends = (Tensor("v", (5,), layout=layout),), (Tensor("y", (3,), layout=layout),)
        kernels = code_of(Region("r", (layer,), *ends)).kernels
        bodies = [k.source.partition("*/")[2] for k in kernels if k.kind != "layer"]
        sources.add(tuple(bodies))
    assert len(sources) == 1


def test_images_need_one() -> None:
    region = chain("NHWC")
    odd = replace(region, inputs=(replace(region.inputs[0], layout="C"),))
    with pytest.raises(UnsupportedError, match="layout 'C' of shape"):
        code_of(odd)


def test_unknown_accelerator() -> None:
    with pytest.raises(TargetError, match="'optical'"):
        byoc_dory.generate(chain("NHWC"), Cost(DIANA, TilingOptions()), "p", "optical")


IMPORTS = """
import sys
import byoc_dory
import byoc_dory.tiling
from byoc_dory.soc.diana.description import DIANA
assert "pulp" not in sys.modules and "jinja2" not in sys.modules, "descriptions load a solver"
from tests.byoc_dory.test_codegen import chain, code_of
code_of(chain("NHWC"))
assert not {"tvm", "tvm_ffi"} & set(sys.modules), "the code generator loads the compiler"
"""


def test_stands_on_the_ground() -> None:
    """Descriptions load no solver, and generating loads no TVM."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
