"""Handwritten digits, end to end: accuracy of a trained network in every form, on the simulator.

The data are scikit-learn's 1,797 images of 8x8 pixels; every fourth, 450 in all, is held out from
training and calibration alike.  The networks are the zoo's: in float as trained by
`benchmarks.train_digits`, quantized to int8 with training images, retargeted to the number schemes
of DIANA's cores with the same images.  Accuracy is that of the generated C over the whole held-out
split, run natively with the device models; cycles are those of one inference on the
instruction-set simulator, whose outputs are checked to be the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import htvm
from benchmarks.artefact import Artefact, main, write
from benchmarks.made_of import RowSource, program
from htvm import zoo
from htvm.progress import Progress
from htvm.tools.report.table import Column, Table, count, text
from htvm.tools.zoo.trained import digits_data, weights_file

if TYPE_CHECKING:
    from htvm.model import Model

__all__ = ["BUILDS", "Row", "made_of", "run"]

DIGITS, TERNARY = zoo.TRAINED

FLOAT_PERCENT = 98.0
"""What the float network must reach."""
DIGITAL_POINTS, MIXED_POINTS = 0.3, 1.5
"""What running on the digital core, and on both cores with ternary weights, may cost."""


@dataclass(frozen=True)
class Build:
    """A network on a target.

    Attributes:
        network: of the zoo.
        target: of `htvm.targets`.
        calibrated: whether retargeting sees training images, or noise.
    """

    network: str
    target: str
    calibrated: bool = True


BUILDS = (
    Build(DIGITS, "diana.cpu"),
    Build(DIGITS, "diana.digital"),
    Build(DIGITS, "diana.digital", calibrated=False),
    Build(TERNARY, "diana.cpu"),
    Build(TERNARY, "diana.mixed"),
    Build(TERNARY, "diana"),
)


@dataclass(frozen=True)
class Row:
    """A network in one form.

    Attributes:
        network: of the zoo.
        form: in words.
        target: what it is built for; empty for the float network.
        right: held-out images recognised.
        images: of them.
        sqnr_db: of the logits over all images, against the float network's.
        cycles: of one inference; ``None`` for the float network.
        latency_ms: likewise.
        analog: layers on the analog core.
    """

    network: str
    form: str
    target: str
    right: int
    images: int
    sqnr_db: float | None = None
    cycles: int | None = None
    latency_ms: float | None = None
    analog: int = 0

    @property
    def percent(self) -> float:
        """Accuracy."""
        return 100 * self.right / self.images


def float_logits(network: str, images: np.ndarray) -> np.ndarray:
    """What the float network computes, by onnxruntime: ``[N, 10]``."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(weights_file(network)))
    (name,) = (item.name for item in session.get_inputs())
    return np.concatenate([session.run(None, {name: image[None]})[0] for image in images])


def model_of(build: Build) -> Model:
    """The network of a build."""
    model = zoo.build(build.network)
    return model if build.calibrated else replace(model, calibration=None)


def made_of() -> Iterator[RowSource]:
    """Every program that the table is made of."""
    for build in BUILDS:
        name = build.network + ("" if build.calibrated else " without data")
        yield program(name, partial(model_of, build), build.target)


def built(build: Build, images: np.ndarray, labels: np.ndarray, wanted: np.ndarray) -> Row:
    """Accuracy of a build over all images, cycles of its first.

    Args:
        build: what to build.
        images, labels: the held-out split.
        wanted: the float network's logits.
    """
    model = model_of(build)
    native = htvm.build(model, build.target, "host")
    logits = np.concatenate([native.run(image[None]).outputs[0] for image in images])
    simulated = htvm.build(model, build.target)
    first = simulated.run(images[:1])
    if not np.array_equal(first.outputs[0], logits[:1]):
        raise AssertionError(f"{build.network} on {build.target}: firmware and native differ")
    placed = native.compiled.planned.places.values()
    form = "int8" if build.target.endswith(".cpu") else "retargeted"
    if not build.calibrated:
        form += " without data"
    return Row(
        build.network,
        form,
        build.target,
        int((logits.argmax(axis=1) == labels).sum()),
        len(labels),
        float(10 * np.log10(np.square(wanted).sum() / np.square(wanted - logits).sum())),
        first.cycles,
        first.latency_ms,
        sum(place == "analog" for place in placed),
    )


def run(folder: Path, progress: Progress | None = None) -> Artefact:
    """Measure the digits networks in every form."""
    progress = progress or Progress()
    _, _, images, labels = digits_data()
    rows, wanted = [], {}
    for network in zoo.TRAINED:
        with progress.stage(f"{network} in float"):
            wanted[network] = float_logits(network, images)
        right = int((wanted[network].argmax(axis=1) == labels).sum())
        rows.append(Row(network, "float, onnxruntime", "", right, len(labels)))
    for build in BUILDS:
        with progress.stage(f"{build.network} on {build.target}"):
            network = build.network
            rows.append(built(build, images, labels, wanted[network]))
    kept = _goals(rows)
    artefact = Artefact(
        "digits",
        "Handwritten digits: accuracy and latency in every form",
        "\n\n".join([str(__doc__).strip(), text(_table(rows)), *kept]),
        {"rows": [{**asdict(row), "percent": row.percent} for row in rows], "goals": list(kept)},
    )
    write(artefact, folder)
    return artefact


def _goals(rows: list[Row]) -> tuple[str, ...]:
    """What had to be reached, and whether it is."""

    def found(is_it: Callable[[Row], bool]) -> float:
        return min(row.percent for row in rows if is_it(row))

    plain = found(lambda row: row.network == DIGITS and not row.target)
    digital = found(lambda row: row.target == "diana.digital" and row.form == "retargeted")
    mixed = found(lambda row: row.analog > 0)
    return (
        f"float: {plain:.2f} %, at least {FLOAT_PERCENT:g} % {_said(plain >= FLOAT_PERCENT)}",
        f"digital core: {plain - digital:.2f} points below float, at most {DIGITAL_POINTS:g} "
        f"{_said(plain - digital <= DIGITAL_POINTS)}",
        f"both cores, ternary: {plain - mixed:.2f} points below float, at most {MIXED_POINTS:g} "
        f"{_said(plain - mixed <= MIXED_POINTS)}",
    )


def _said(reached: bool) -> str:
    return "wanted: reached" if reached else "wanted: MISSED"


def _table(rows: list[Row]) -> Table:
    titles = (
        "network", "form", "target", "analog layers", "right", "accuracy %", "logits dB", "cycles",
        "ms",
    )  # fmt: skip
    cells = tuple(
        (
            row.network,
            row.form,
            row.target,
            str(row.analog) if row.target else "",
            f"{row.right}/{row.images}",
            f"{row.percent:.2f}",
            "" if row.sqnr_db is None else f"{row.sqnr_db:.1f}",
            count(row.cycles) if row.cycles else "",
            "" if row.latency_ms is None else f"{row.latency_ms:.2f}",
        )
        for row in rows
    )
    return Table(tuple(Column(t, i > 2) for i, t in enumerate(titles)), cells)


if __name__ == "__main__":
    sys.exit(main(run))
