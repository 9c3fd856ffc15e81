"""Products of two matrices in ranges of columns, where L1 has no room for the second operand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from byoc_dory.codegen import generate
from byoc_dory.cost import Cost
from byoc_dory.errors import TilingError
from byoc_dory.layers import MulShift, Tensor, matmul_layer
from byoc_dory.options import TilingOptions
from byoc_dory.region import Region
from byoc_dory.soc.siracusa.description import SIRACUSA
from byoc_dory.soc.snitch_ita.description import SNITCH_ITA
from tests.byoc_dory.program import Case
from tests.byoc_dory.test_neureka_native import check
from tests.reference.matrix_layers import stored

BUDGETS = (300, 500, 800, 1_300, 2_000, 3_200, 5_000)


def case_of(seed: int, soc: object, home: str) -> tuple[Case, set[str]]:
    """A product with the smallest budget that some tile fits, and the axes of several tiles."""
    rng = np.random.default_rng(seed)
    rows, k, c = (int(size) for size in rng.integers(1, 50, 3))
    swapped = bool(rng.integers(2))
    a = Tensor("a", (c, 1, rows), "int8", "NHWC")
    b = Tensor("b", (c, 1, k) if swapped else (k, 1, c), "int8", "NHWC")
    requant = MulShift((3,), (int(np.log2(200.0 * c**0.5)),), (7,))
    layer = matmul_layer("product", a, b, requant=requant, transposed=swapped)
    x, y = (rng.integers(-128, 128, t.shape).astype(np.int8) for t in (a, b))
    left, right = (t.reshape(t.shape[0], -1).T.astype(np.int64) for t in (x, y))
    acc = left @ (right.T if swapped else right)
    wanted = np.clip((acc * 3 + 7) >> requant.shift[0], -128, 127).astype(np.int8)
    for budget in BUDGETS:
        options = TilingOptions(l1_budget=budget, schedule=("overlapped", "published")[seed % 2])  # type: ignore[arg-type]
        region = Region(f"r{seed}", (layer,), (a, b), (layer.output,))
        try:
            code = generate(region, Cost(soc, options), f"r{seed}", home)  # type: ignore[arg-type]
        except TilingError:
            continue
        (kernel,) = code.kernels
        assert kernel.program is not None
        several = {axis.name for axis in kernel.program.axes if axis.count > 1}
        bytes_ = np.asarray(wanted, order="C").view(np.uint8).reshape(-1)
        return Case(code, (stored(x), stored(y)), (bytes_,)), several
    raise AssertionError(f"no tile fits: {rows} x {c} x {k}")


@pytest.mark.parametrize("soc", [SIRACUSA, SNITCH_ITA], ids=["simd", "plain"])
@pytest.mark.parametrize("sanitize", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_products_in_ranges_of_columns(soc: object, sanitize: bool, tmp_path: Path) -> None:
    found = [case_of(40 * sanitize + seed, soc, "cluster") for seed in range(8)]
    assert sum("k" in axes for _, axes in found) >= 3
    assert any({"y", "k"} <= axes for _, axes in found)
    check([case for case, _ in found], tmp_path, sanitize, soc)  # type: ignore[arg-type]
