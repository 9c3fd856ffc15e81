"""Networks of torch, quantized for chips and trained for them: accuracy of module and of build.

The data are scikit-learn's 1,797 images of digits, of which a quarter (450) is held out, others for
each seed; the network has three convolutions (16, 32 and 32 channels, batch norms folded) and a
linear layer, with initial weights by the same seed.  It is trained in float (20 epochs), then
quantized by `htvm.torch`: calibrated with 512 images (PTQ), and trained further in the target's
numbers (QAT; 8 epochs, with fewer than 8 bits 20; scales are frozen in the last 4).  Accuracy is
that of torch's module, and of the generated C of the trained network over all held-out images, run
natively with the device models; an output counts as different if any of its bits is.  Cycles
(instructions of a Cortex-M4) are those of one inference on the simulated chip, whose outputs are
checked to be the same.  Noise is that of the array's converters, in their steps.

Needs the extras torch and digits.  Rows that the folder has already are not measured again, so it
may be interrupted (about a minute a row; `--out docs/results` updates docs/results/torch_bits.*).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import htvm
from benchmarks.artefact import Artefact, main, write
from htvm.progress import Progress
from htvm.tools.report.table import Column, Table, count, text

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FORMS", "SEEDS", "Form", "Row", "run"]

SEEDS = (0, 1, 2)
POINTS = 2.0
"""What ternary weights may cost a trained network, in points of accuracy."""

_NAME = "torch_bits"
_NOISE = 0.5  # steps of the converters
_CALIBRATE = 512
_BATCH = 64


@dataclass(frozen=True)
class Form:
    """What a network is quantized and trained for.

    Attributes:
        target: of `htvm.targets`.
        bits: of the weights; 0 for an array's ternary ones.
        noise: in training, in steps of an array's converters.
    """

    target: str
    bits: int = 8
    noise: float = 0.0

    @property
    def options(self) -> dict[str, Any]:
        """For `htvm.torch.prepare`."""
        return {"weight_bits": self.bits} if self.bits else {}

    @property
    def name(self) -> str:
        """In words."""
        weights = f"{self.bits} bits" if self.bits else "ternary"
        return weights + (f", noise {self.noise:g}" if self.noise else "")


FORMS = (
    Form("diana.digital"),
    Form("diana.analog", 0),
    Form("diana.analog", 0, _NOISE),
    Form("siracusa", 8),
    Form("siracusa", 4),
    Form("siracusa", 2),
    Form("cortex_m4"),
)


@dataclass(frozen=True)
class Row:
    """A network trained for one target.

    Attributes:
        seed: of split, initial weights and batches.
        target, form: what it was trained for.
        images: held out; accuracies are in percent of them.
        float_percent, ptq_percent, qat_percent: of torch's modules.
        chip_percent: of the build of the last.
        different: outputs (logits) of the build that differ from the module's.
        noisy_percent: of the build, with noise of an array's converters; ``None`` without array.
        cycles: of one inference, or ``None`` where instructions are counted.
        instructions: likewise.
        energy_uj: of one inference, if the SoC's description has powers.
        on_cores: layers with weights on accelerators, of how many.
    """

    seed: int
    target: str
    form: str
    images: int
    float_percent: float
    ptq_percent: float
    qat_percent: float
    chip_percent: float
    different: int
    noisy_percent: float | None
    cycles: int | None
    instructions: int | None
    energy_uj: float | None
    on_cores: str

    @property
    def key(self) -> tuple[int, str, str]:
        """What tells rows apart."""
        return self.seed, self.target, self.form


@dataclass(frozen=True)
class Digits:
    """Images ``[N, 1, 8, 8]`` in 0..1 as tensors, and labels, of training and held out."""

    images: Any
    labels: Any
    held_out: Any
    wanted: Any


def digits(seed: int) -> Digits:
    """Return the data, split by a seed."""
    import torch
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(
        (images / 16).astype(np.float32).reshape(-1, 1, 8, 8),
        labels,
        test_size=0.25,
        stratify=labels,
        random_state=seed,
    )
    learnt, held_out, learnt_labels, wanted = (torch.from_numpy(part) for part in parts)
    return Digits(learnt, learnt_labels, held_out, wanted)


def network(width: int = 16) -> Any:
    """Return the network, with initial weights by torch's seed."""
    from torch import nn

    def block(read: int, made: int, stride: int) -> list[Any]:
        conv = nn.Conv2d(read, made, 3, stride=stride, padding=1)
        return [conv, nn.BatchNorm2d(made), nn.ReLU()]

    layers = [*block(1, width, 1), *block(width, 2 * width, 2), *block(2 * width, 2 * width, 2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(8 * width, 10))


def train(
    module: Any, data: Digits, epochs: int, rate: float, seed: int, *, frozen: int = 0
) -> None:
    """Train a module, or one from `htvm.torch.prepare`.

    Args:
        module: what is trained.
        data: to learn from.
        epochs: how often all images are seen.
        rate: largest learning rate.
        seed: of the batches.
        frozen: epochs at the end in which scales stay as they are.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(module.parameters(), rate)
    steps = epochs * (len(data.images) // _BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)
    module.train()
    for epoch in range(epochs):
        if frozen and epoch == epochs - frozen:
            from htvm.torch import freeze_scales

            freeze_scales(module)
        order = torch.randperm(len(data.images), generator=generator)
        for first in range(0, len(order) - _BATCH + 1, _BATCH):
            batch = order[first : first + _BATCH]
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(module(data.images[batch]), data.labels[batch])
            loss.backward()
            optimizer.step()
            schedule.step()
    module.eval()


def logits(module: Any, images: Any) -> NDArray[np.float32]:
    """Return what a module computes for each image by itself, ``[N, 10]``."""
    import torch

    with torch.no_grad():
        return np.concatenate([module(image[None]).numpy() for image in images])


def percent(found: NDArray[np.float32], data: Digits) -> float:
    """Return the accuracy on held-out images."""
    return float(100 * (found.argmax(axis=1) == data.wanted.numpy()).mean())


def measured(form: Form, seed: int, data: Digits, trained: Any, float_percent: float) -> Row:
    """Quantize a network for a target, train and build it.

    Raises:
        AssertionError: the chip's firmware and the native program differ.
    """
    import torch

    from htvm.torch import convert, prepare

    torch.manual_seed(seed)
    example = (data.images[:1],)
    calibrated = prepare(trained, example, form.target, **form.options)
    calibrated(data.images[:_CALIBRATE])
    ptq = percent(logits(convert(calibrated), data.held_out), data)
    prepared = prepare(
        trained, example, form.target, training=True, noise=form.noise, **form.options
    )
    epochs, rate = (8, 2e-3) if form.bits == 8 else (20, 4e-3)
    train(prepared, data, epochs, rate, seed, frozen=4)
    converted = convert(prepared)
    wanted = logits(converted, data.held_out)
    model = htvm.load(converted, "digits")
    native = htvm.build(model, form.target, "host")
    images = data.held_out.numpy()
    found = np.concatenate([native.run(image[None]).outputs[0] for image in images])
    noisy = None
    if form.bits == 0:
        runs = [
            native.run(image[None], analog_noise=_NOISE, noise_seed=number).outputs[0]
            for number, image in enumerate(images)
        ]
        noisy = percent(np.concatenate(runs), data)
    simulated = htvm.build(model, form.target)
    first = simulated.run(images[:1])
    if not np.array_equal(first.outputs[0], found[:1]):
        raise AssertionError(f"{form.target}: firmware and native differ")
    energy = simulated.report().energy
    places = native.compiled.planned.places.values()
    return Row(
        seed,
        form.target,
        form.name,
        len(images),
        float_percent,
        ptq,
        percent(wanted, data),
        percent(found, data),
        int((found != wanted).sum()),
        noisy,
        first.cycles,
        first.instructions,
        None if energy is None else energy.microjoules,
        f"{sum(place != 'cpu' for place in places)} of {len(places)}",
    )


def run(folder: Path, progress: Progress | None = None) -> Artefact:
    """Train, build and measure what the folder does not have yet."""
    import torch

    progress = progress or Progress()
    torch.set_num_threads(1)
    path = folder / f"{_NAME}.json"
    rows = {row.key: row for row in _stored(path)}
    artefact = _artefact(rows)
    for seed in SEEDS:
        missing = [form for form in FORMS if (seed, form.target, form.name) not in rows]
        if not missing:
            continue
        data = digits(seed)
        with progress.stage(f"seed {seed}, float"):
            torch.manual_seed(seed)
            trained = network()
            train(trained, data, 20, 5e-3, seed)
            float_percent = percent(logits(trained, data.held_out), data)
        for form in missing:
            with progress.stage(f"seed {seed}, {form.target}, {form.name}"):
                row = measured(form, seed, data, trained, float_percent)
            rows[row.key] = row
            artefact = _artefact(rows)
            write(artefact, folder)
    return artefact


def _stored(path: Path) -> list[Row]:
    if not path.is_file():
        return []
    names = {entry.name for entry in fields(Row)}
    found = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return [Row(**each) for each in found if set(each) == names]


def _artefact(rows: Mapping[tuple[int, str, str], Row]) -> Artefact:
    order = [(seed, form.target, form.name) for seed in SEEDS for form in FORMS]
    kept = [rows[key] for key in order if key in rows]
    goals = _goals(kept)
    return Artefact(
        _NAME,
        "Trained for the chip: accuracy of torch's module and of the build",
        "\n\n".join([str(__doc__).strip(), text(_table(kept)), *goals]),
        {"rows": [asdict(row) for row in kept], "goals": list(goals)},
    )


def _goals(rows: list[Row]) -> tuple[str, ...]:
    ternary = [row.float_percent - row.qat_percent for row in rows if "ternary" in row.form]
    exact = [row.different for row in rows if row.target != "cortex_m4"]
    if not ternary:
        return ()
    return (
        f"ternary, trained: at most {max(ternary):.2f} points below float, at most {POINTS:g} "
        f"{_said(max(ternary) <= POINTS)}",
        f"powers of two: {sum(exact)} outputs differ from the module's, none "
        f"{_said(not sum(exact))}",
    )


def _said(reached: bool) -> str:
    return "wanted: reached" if reached else "wanted: MISSED"


def _table(rows: list[Row]) -> Table:
    columns = (
        Column("seed"),
        Column("target"),
        Column("weights"),
        Column("float %", number=True),
        Column("PTQ %", number=True),
        Column("QAT %", number=True),
        Column("chip %", number=True),
        Column("outputs different", number=True),
        Column("chip %, noise 0.5", number=True),
        Column("cycles", number=True),
        Column("uJ", number=True),
        Column("on accelerators", number=True),
    )
    cells = tuple(
        (
            str(row.seed),
            row.target,
            row.form,
            f"{row.float_percent:.2f}",
            f"{row.ptq_percent:.2f}",
            f"{row.qat_percent:.2f}",
            f"{row.chip_percent:.2f}",
            f"{row.different} of {10 * row.images:,}",
            "" if row.noisy_percent is None else f"{row.noisy_percent:.2f}",
            _counted(row),
            "" if row.energy_uj is None else f"{row.energy_uj:.2f}",
            row.on_cores,
        )
        for row in rows
    )
    return Table(columns, cells)


def _counted(row: Row) -> str:
    if row.cycles is not None:
        return count(row.cycles)
    return "" if row.instructions is None else f"{count(row.instructions)} instr."


if __name__ == "__main__":
    sys.exit(main(run))
