"""Helper: layers through this project's lowering and Vela, on the device's model alone.

A layer takes a third of a build: no C is compiled.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import htvm
from byoc_dory.options import TilingOptions
from byoc_dory.soc.ethos_u import regor
from byoc_dory.soc.ethos_u.device import Device
from byoc_dory.soc.ethos_u.lower import networks
from byoc_dory.soc.ethos_u.vela import compiled_thriftily
from byoc_dory.soc.registry import resolve
from htvm.build_options import BuildOptions
from htvm.compiled import Compiled
from htvm.firmware.host import model_library
from tests.frontend.flatfile import Graph
from tests.frontend.single import inputs_of
from tests.frontend.tflm import reference

ON_CPU = "on the CPU: "

# Looking for both takes as long as a layer: entry points of packages, and hashes of C files.
_target = cache(resolve)
_library = cache(model_library)


def ask_here(request: Mapping[str, Any], network: bytes, _: str) -> tuple[dict[str, Any], bytes]:
    """Do what `byoc_dory.soc.ethos_u.vela.ask` does, in this process, which a network may end."""
    return regor.compiled(request, network)


def outcome(graph: Graph, rng: np.random.Generator, target: str, folder: Path) -> str:
    """Return ``equal`` to TFLite Micro, why it is on the CPU, or how much differs.

    Args:
        graph: a network.
        rng: draws its inputs.
        target: name of the target.
        folder: for the file.
    """
    path = folder / "network.tflite"
    path.write_bytes(graph.file())
    compiled = Compiled(htvm.load(path), _target(target), BuildOptions())
    regions = [*compiled.partition.regions.values()]
    # Reshapes are aliases on either, so that the order of bytes is the file's.
    left = [said for said in compiled.dispatch.verdicts if not said.accepted]
    left = [said for said in left if said.kind != "reshape"]
    if left or len(regions) != 1:
        reasons = {f"{said.rule} {re.sub('[0-9]+', 'N', said.reason)}".strip() for said in left}
        return ON_CPU + "; ".join(sorted(reasons) or ["a reshape alone"])
    (core,), (region,) = compiled.target.accelerators, regions
    soc = compiled.target.soc
    settings = core.settings(soc, TilingOptions())  # type: ignore[attr-defined]
    inputs, device = inputs_of(graph, rng), Device(_library(soc))
    known = {info.name: data for info, data in zip(compiled.source.inputs, inputs, strict=True)}
    results = [tensor.name for tensor in region.outputs]
    for network in networks(region.layers, results):
        given = [known[tensor.name] for tensor in network.inputs]
        outputs, complaint = device.run(compiled_thriftily(network, settings), given)
        if complaint:
            return f"the model complains: {complaint}"
        for tensor, data in zip(network.outputs, outputs, strict=True):
            known[tensor.name] = data.view(tensor.dtype)
    for name, wanted in zip(results, reference(graph, inputs), strict=True):
        different = int((known[name] != wanted.ravel()).sum())
        if different:
            return f"{different} of {wanted.size} elements differ"
    return "equal"
