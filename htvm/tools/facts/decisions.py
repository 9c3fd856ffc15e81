"""Measuring how often source and build decide as labels say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from htvm.tools.report.decisions import Decisions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from htvm.aot.reference import Reference
    from htvm.model import Model


def decided(model: Model, reference: Reference) -> NDArray[np.int64]:
    """Return what a model decides on its calibration inputs: the largest output of each, [N].

    Args:
        model: a model with calibration inputs and one output.
        reference: computes its outputs, or those of a build of it.
    """
    assert model.calibration is not None
    arrays = [model.calibration[info.name] for info in model.inputs]
    samples = zip(*arrays, strict=True)
    return np.array([int(reference(list(sample))[0].argmax()) for sample in samples])


def decisions_of(
    model: Model,
    reference: Reference,
    wanted: NDArray[np.int64] | None = None,
) -> Decisions | None:
    """Return how a build decides on the model's labelled inputs; None without labels.

    Args:
        model: the source model.
        reference: computes the build's outputs; runs on the simulated SoC equal it.
        wanted: what the source decides, [N]; computed here by default.
    """
    from htvm.aot.reference import build_llvm_reference

    if model.labels is None:
        return None
    if wanted is None:
        wanted = decided(model, build_llvm_reference(model.module))
    made = decided(model, reference)
    return Decisions(
        samples=len(model.labels),
        source=int((wanted == model.labels).sum()),
        build=int((made == model.labels).sum()),
        same=int((wanted == made).sum()),
    )
