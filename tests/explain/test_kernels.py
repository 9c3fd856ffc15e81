"""What an explanation says of kernels on cores without accelerators."""

from __future__ import annotations

import htvm
from htvm.tools.cli.arguments import open_model
from htvm.tools.report.explain import explain_text


def test_operators_without_a_kernel_of_their_own_are_named() -> None:
    found = htvm.build(open_model("zoo:resnet8"), "cortex_m4").explain(0)
    kernels = {row.layer: row.kernel for row in found.rows}
    assert kernels["softmax_0"].startswith("TVM's plain C")
    assert kernels["conv2d_1"].startswith("columns, ") and kernels["dense_0"].startswith("columns")
    # A fused sum is a part of its convolution's kernel; a reshape needs none.
    assert kernels["add_0"] == kernels["conv2d_2"] and kernels["reshape_0"] == ""
    assert "kernel" in explain_text(found).split("\n\n")[1].splitlines()[0]
    said = "no kernel of their own, TVM's plain C: softmax_0"
    assert said in explain_text(found) and said in explain_text(found, 100)
