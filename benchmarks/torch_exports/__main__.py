"""``python -m benchmarks.torch_exports``: how near each export is to torch, one line each.

Names of networks, quantizers and targets (`benchmarks.torch_exports.export`), ``ptq`` and ``qat``
choose from the grid; without any, all of it is measured.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import torch

from benchmarks.torch_exports.export import QUANTIZERS, TARGETS, exported
from benchmarks.torch_exports.fidelity import measured
from benchmarks.torch_exports.networks import NETWORKS
from htvm.errors import HtvmError

_WAYS = ("ptq", "qat")


def _main(chosen: Sequence[str]) -> None:
    unknown = set(chosen) - {*NETWORKS, *QUANTIZERS, *TARGETS, *_WAYS}
    if unknown:
        sys.exit(f"unknown: {', '.join(sorted(unknown))}")
    torch.set_num_threads(1)
    axes = [[item for item in axis if item in chosen] or axis
            for axis in (_WAYS, [*QUANTIZERS, *TARGETS], NETWORKS)]  # fmt: skip
    print(f"{'network':16}{'quantizer':17}way  elements  per million  largest  outputs  s")
    for way in axes[0]:
        for quantizer in axes[1]:
            for network in axes[2]:
                print(
                    f"{network:16}{quantizer:17}{way}  {_row(network, quantizer, way)}", flush=True
                )


def _row(network: str, quantizer: str, way: str) -> str:
    start = time.perf_counter()
    try:
        program = exported(network, quantizer, training=way == "qat")
    except (HtvmError, RuntimeError, ValueError, TypeError, AttributeError) as error:
        return f"not exported: {type(error).__name__}"
    try:
        found = measured(program)
    except HtvmError as error:
        return f"not read: {error}"
    share = 1e6 * found.different / max(found.elements, 1)
    ends, spent = f"{found.ends_different}/{found.ends}", time.perf_counter() - start
    return f"{found.elements:8}  {share:11.1f}  {found.largest:7}  {ends:>9}  {spent:.0f}"


_main(sys.argv[1:])
