"""Inputs that a flow keeps beside its network, in ``inputs.npz``: what a file does not say of them.

Research flows declare types and sizes incompletely; the arrays have both.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from byoc_dory.layers import Array
from htvm.arrays import read_arrays
from htvm.errors import InputError

_log = logging.getLogger(__name__)


def samples_beside(path: Path, inputs: Sequence[str]) -> dict[str, Array]:
    """Return arrays by the names of inputs; empty if there is no such file, or it cannot be read.

    Args:
        path: path of the network.
        inputs: names of its inputs. The arrays have these names, or are in this order.
    """
    file = path.with_name("inputs.npz")
    if not file.is_file():
        return {}
    try:
        samples = read_arrays(file, "it is left out")
    except InputError as error:
        _log.warning("%s", error)
        return {}
    named = all(name in samples for name in inputs)
    order = list(inputs) if named else list(samples)
    return {name: samples[key] for name, key in zip(inputs, order, strict=False)}
