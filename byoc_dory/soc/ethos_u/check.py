"""Executing a region once on the model of the device, against what its layers compute."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from byoc_dory.layers import Array, Layer
from byoc_dory.region import Region
from byoc_dory.soc.ethos_u.device import Device
from byoc_dory.soc.ethos_u.lower import networks
from byoc_dory.soc.ethos_u.model import limits_of, run
from byoc_dory.soc.ethos_u.vela import Settings, VelaError, compiled_thriftily

_SEED = 2023


class ProgramCheck:
    """Finds the layer with which a region's program goes wrong.

    Args:
        library: the models of the device as a shared library.
        settings: what Vela compiles for.
    """

    def __init__(self, library: Path, settings: Settings) -> None:
        self._device = Device(library)
        self._settings = settings

    def culprit(self, region: Region) -> tuple[str, str] | None:
        """Return the layer to leave to the CPU, and what is wrong; None if nothing is.

        If the region differs as a whole, its first layers are compiled alone, one more each time,
        until they differ, too.
        """
        outputs = [tensor.name for tensor in region.outputs]
        rng = np.random.default_rng(_SEED)
        inputs = {
            tensor.name: rng.integers(*limits_of(tensor), tensor.elements, tensor.dtype, True)
            for tensor in (*region.inputs, *region.mapped)
        }
        known = run(region.layers, inputs)
        wrong = self._difference(region.layers, outputs, known)
        if not wrong:
            return None
        for count in range(1, len(region.layers) + 1):
            first, last = region.layers[:count], region.layers[count - 1]
            found = self._difference(first, [last.output.name], known)
            if found:
                return last.name, found
        made = {layer.output.name: layer.name for layer in region.layers}
        return made[outputs[-1]], wrong

    def _difference(
        self, layers: Sequence[Layer], outputs: Sequence[str], known: dict[str, Array]
    ) -> str:
        """Return what is wrong with layers as one program; empty if nothing is."""
        there = dict(known)
        for network in networks(layers, outputs):
            try:
                made = compiled_thriftily(network, self._settings)
            except VelaError as error:
                return error.what
            inputs = [there[tensor.name] for tensor in network.inputs]
            results, complaint = self._device.run(made, inputs)
            if complaint:
                return f"the model of the device complains: {complaint}"
            for tensor, result in zip(network.outputs, results, strict=True):
                wanted = known[tensor.name].reshape(-1)
                equal = int((result.view(tensor.dtype) == wanted).sum())
                if equal < wanted.size:
                    return f"Vela's program gives {wanted.size - equal} of {wanted.size} wrong"
        return ""
