"""The demo: a network on the simulated DIANA, from start to end, compared with plain TVM.

``python -m htvm.tools.cli.demo [MODEL]``; without a model, it shows real digits to the zoo's
network for handwritten digits.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import click
import numpy as np

import htvm
from htvm.progress import Progress
from htvm.progress_bar import shown_progress
from htvm.tools.cli.app import exit_code
from htvm.tools.cli.arguments import open_model, read_samples
from htvm.tools.cli.output import model_word
from htvm.tools.cli.terminal import echo, terminal_width
from htvm.tools.report.compare import comparison_text
from htvm.tools.report.explain import explain_screen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from htvm.inputs import Inputs
    from htvm.model import Model
    from htvm.result import RunResult


TARGET = "diana"
INPUTS = 8
DIGITS = "zoo:digits"


@dataclass(frozen=True, eq=False)
class _Shown:
    """The model and inputs of a demo.

    Attributes:
        model: the network.
        samples: the inputs of each inference.
        words: a description of the samples.
        labels: their labels, if they are digits; otherwise empty.
        images: all held-out digits, if they are digits; otherwise empty.
    """

    model: Model
    samples: Sequence[Inputs]
    words: str
    labels: Sequence[int] = ()
    images: Any = ()


@click.command()
@click.argument("model", default=DIGITS)
def demo(model: str) -> None:
    """Compare MODEL on the simulated DIANA with plain TVM, and show where the time goes."""
    begin = time.monotonic()
    with shown_progress() as progress:
        exact = _show(model, progress)
    echo(f"\ndone in {time.monotonic() - begin:.0f} s")
    if not exact:
        raise click.exceptions.Exit(1)


def _show(name: str, progress: Progress) -> bool:
    """Print everything; return whether every output equals the reference, bit for bit."""

    with progress.stage("opening the model"):
        shown = _open_shown(name)
    with progress.stage(f"building for {TARGET}"):
        module = htvm.build(shown.model, TARGET, progress=progress)
        native = htvm.build(shown.model, TARGET, "host", progress=progress)
    with progress.stage("simulating"):
        result = module.run(shown.samples[0])
    number = count(1)
    if len(shown.labels):
        _title(next(number), f"a handwritten digit on {TARGET}, simulated")
        _recognise(shown, result, native, progress)

    _title(next(number), f"{name} on the CPU and on {TARGET}, {shown.words}, simulated")
    comparison = htvm.compare(shown.model, TARGET, shown.samples, progress=progress)
    echo(comparison_text(comparison, terminal_width()))

    _title(next(number), f"where the time goes on {TARGET}")
    echo(module.report().screen())

    _title(next(number), "where each operator runs, and why")
    echo(explain_screen(module.explain()))
    word = model_word(name)
    echo(f"\nall tables: htvm report {word} --all\neach operator: htvm explain {word}")

    _title(next(number), "is it right?")
    with progress.stage("running the same C natively"):
        again = native.run(shown.samples[0])
    same = all(map(np.array_equal, result.outputs, again.outputs))
    exact = all(row.exact for row in comparison.rows if row.exact is not None)
    echo(
        f"outputs equal the integer reference on all {INPUTS} inputs, every configuration: "
        f"{'yes' if exact else 'NO'}\n"
        f"the same C compiled natively gives the same outputs: {'yes' if same else 'NO'}"
    )
    return exact and same


def _open_shown(name: str) -> _Shown:
    """Return the model, with held-out digits if it recognises digits, else with seeded inputs."""
    model = open_model(name)
    if name not in [f"zoo:{known}" for known in htvm.zoo.TRAINED]:
        samples = read_samples("random", model.inputs, INPUTS)
        return _Shown(model, samples, f"{INPUTS} random inputs")
    from htvm.tools.zoo.trained import digits_data

    _, _, images, labels = digits_data()
    samples = [{model.inputs[0].name: image[None]} for image in images[:INPUTS]]
    return _Shown(model, samples, f"{INPUTS} held-out digits", labels.tolist(), images)


def _recognise(shown: _Shown, result: RunResult, native: htvm.Module, progress: Progress) -> None:
    """Show one digit with its scores, and how many of all digits are recognised."""
    echo(recognised(shown.images[0], result.outputs[0], shown.labels[0]))
    echo(f"{result.cycles:,} cycles, {result.latency_ms:.2f} ms")
    with progress.stage(f"recognising all {len(shown.images)} held-out digits"):
        digits = [int(native.run(image[None]).outputs[0].argmax()) for image in shown.images]
    right = sum(map(int.__eq__, digits, shown.labels))
    share = 100 * right / len(digits)
    echo(f"of all {len(digits)} held-out digits {right} are recognised, {share:.1f} %")


def _title(number: int, text: str) -> None:
    line = f"{number}. {text}"
    echo(f"\n{line}\n{'=' * len(line)}\n")


def main() -> int:
    """Run the demo; the exit codes are those of the command ``htvm``."""
    echo(f"htvm {htvm.__version__}")
    return exit_code(demo, None)


_SHADES = " .:-=+*#%@"
_BAR = 24  # characters of the longest bar
_GAP = 6


def recognised(image: NDArray[Any], logits: NDArray[Any], label: int) -> str:
    """Return an image next to its scores, with the decision below.

    Args:
        image: floats in 0..1, ``[..., y, x]``.
        logits: ``[1, classes]`` or ``[classes]``.
        label: the correct class.
    """
    pixels, scores = image.reshape(image.shape[-2:]), logits.reshape(-1)
    best = int(scores.argmax())
    left = _image_lines(pixels)
    right = _bars(scores, best)
    height, width = max(len(left), len(right)), len(left[0])
    left += [" " * width] * (height - len(left))
    right += [""] * (height - len(right))
    lines = [f"{a}{' ' * _GAP}{b}".rstrip() for a, b in zip(left, right, strict=True)]
    said = "right" if best == label else "WRONG"
    return "\n".join([*lines, "", f"decision: {best}, the label: {label}, {said}"])


def _image_lines(pixels: NDArray[Any]) -> list[str]:
    """Return one line per row, with two characters per pixel, in a frame."""
    levels = np.rint(np.clip(pixels, 0, 1) * (len(_SHADES) - 1)).astype(int)
    edge = "+" + "-" * (2 * pixels.shape[1]) + "+"
    rows = ["|" + "".join(_SHADES[level] * 2 for level in row) + "|" for row in levels]
    return [edge, *rows, edge]


def _bars(scores: NDArray[Any], best: int) -> list[str]:
    """Return one line per class: its logit as a bar that starts at the smallest logit."""
    reach = float(scores.max() - scores.min()) or 1.0
    lines = []
    for index, score in enumerate(scores):
        bar = "#" * round(_BAR * float(score - scores.min()) / reach)
        mark = "  <" if index == best else ""
        lines.append(f"{index} {float(score):7.2f} {bar}{mark}")
    return lines


if __name__ == "__main__":
    sys.exit(main())
