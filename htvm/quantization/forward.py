"""Integer forward passes over a batch, fast enough to calibrate with."""

from __future__ import annotations

from collections.abc import Mapping

from byoc_dory.layers import Array
from htvm.quantization.graph import Net

__all__ = ["forward"]


def forward(net: Net, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return every tensor of the network for a batch of inputs.

    Args:
        net: the network.  A softmax and everything after it is not computed.
        inputs: name -> int8 ``[N, y, x, C]`` or ``[N, C]``.

    Returns:
        name -> int8 array of every tensor, including the inputs.
    """
    tensors = dict(inputs)
    for op in net.operators:
        if not op.ends and all(name in tensors for name in op.inputs):
            tensors[op.name] = op.run([tensors[name] for name in op.inputs])
    return tensors
