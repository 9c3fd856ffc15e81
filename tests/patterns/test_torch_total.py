"""torch's sums: what TVM computes against the loops of torch's kernel, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

from patterns.ops.torch.total import torch_total
from tests.patterns.build import module_of, run_tvm
from tests.reference.interpreter import Array, interpret


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of a tensor that lies in the order of its axes."""
    return tuple(int(np.prod(shape[axis + 1 :])) for axis in range(len(shape)))


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((2, 9), (1,)),
        ((1, 5, 7, 7), (2, 3)),
        ((1, 3, 20, 30), (3, 2)),
        ((1, 2, 33, 33), (2, 3)),
        ((3, 5), (1,)),
        ((1, 16, 32), (1,)),
        ((1, 23, 43), (1,)),
        ((1, 300, 9), (1,)),
        ((1, 20, 3, 14), (1,)),
        ((1, 4, 4, 6), (1, 2)),
        ((37, 1), (0,)),
    ],
)
def test_it_adds_as_the_kernel_does(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    total = torch_total(shape, row_major(shape), axes, 0.0123, -7)
    assert total is not None
    x = np.random.default_rng(len(shape)).integers(-128, 128, shape).astype("int8")
    module = module_of([shape], lambda bb, source: total.write(bb, [source], "total_0"))
    wanted = interpret(module, [x]).outputs[0]
    made: Array = run_tvm(module, x)
    assert made.dtype == np.float32 and (made == wanted).all()
    exact = ((x.astype(int) + 7).sum(axes) * 0.0123).reshape(made.shape)
    assert np.abs(made - exact).max() < 1e-3


def test_it_leaves_other_orders_alone() -> None:
    # Columns of a map whose rows are apart: no single axis of torch's loops.
    assert torch_total((1, 4, 6, 5), (240, 60, 10, 1), (2, 3), 0.1, 0) is None
    assert torch_total((1, 1), (1, 1), (1,), 0.1, 0) is None


def test_blocks_of_larger_sums_are_others() -> None:
    """Torch's have 2^(bits of the count / 4) elements, and 2^4 at least."""
    for count, known in ((1 << 19, True), ((1 << 19) + 1, False)):
        assert (torch_total((count, 3), (3, 1), (0,), 0.1, 0) is not None) == known
