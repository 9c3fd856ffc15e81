"""The first files of real exporters that were met: what became of each then, and what does today.

    python -m benchmarks.exporters.cases [FOLDER] [--write docs/exporter-cases.md]

Each file is read and run by the interpreter of the integer form, and compared with what is kept
beside it, or with its own runtime; then it is built for the CPU alone and for DIANA.  The files are
no part of this project.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from typing import Any

import numpy as np

import htvm
from benchmarks import micro
from benchmarks.made_of import RowSource, program, record
from benchmarks.mutant import failure
from htvm.aot.entry import model_sources
from tests.reference.onnx_session import NO_KERNEL, exact_session

__all__ = ["BEFORE", "Case", "cases", "made_of", "page"]

BEFORE = {
    "add_scalar_without_dimensions": "AttributeError while reading",
    "keras_dynamic_batch_densenet": "refused: SHAPE of a static shape",
    "keras_squeezenet_u8io": "exact on the CPU; refused on DIANA, with an untrue reason",
    "max_of_three": "wrong: the third input was ignored",
    "pad_axes_ignored": "wrong: `axes` was ignored, 742 of 784 elements",
    "qdq_symmetric_add_relu_slow": "26 to 53 s, 416 kB of C",
    "shuffle_pt2e_diana_crash": "exact on the CPU; IndexError while retargeting for DIANA",
    "tensors_without_names": 'refused: "the file is damaged"',
    "torch_Dense_qdq_s8pc": "7 of 20 outputs one step off",
    "torch_Dense_qdq_s8sym": "endless: over 15 minutes in one pass",
    "torch_Multi_qdq_u8s8": "3 elements differ",
    "vit_concat_constant": "refused, with an untrue reason",
}
"""What the first version that met a file made of it."""


@dataclass(frozen=True)
class Case:
    """What becomes of a file.

    Attributes:
        name: of its folder.
        result: "exact", "close" (reals, within 1e-5), "differs: ..." (from a session without
            optimization), "wrong: ...", "refused: ...", "unchecked: ..." or "crashed: ...", and the
            oracle.
        builds: for each of `TARGETS`, whether the built program equals its reference, seconds of
            processor time and bytes of C; or why there is none.
    """

    name: str
    result: str
    builds: tuple[str, ...]


TARGETS = ("generic.cpu", "diana")
_FOLDER = Path(__file__).parents[3] / "shared" / "models" / "exporters"
_UNOPTIMIZED = "onnxruntime without optimization"


class _UncheckedError(Exception):
    """There is no oracle on this machine."""


def cases(
    folder: Path, interpret: Callable[..., Any], targets: Sequence[str] = TARGETS
) -> list[Case]:
    """Return the outcome of every case below a folder.

    Args:
        folder: has a folder for each case, with its file and arrays.
        interpret: runs a module of the integer form on a list of arrays.
        targets: what each file is built for.
    """
    return [_case(folder / name, interpret, targets) for name in BEFORE if (folder / name).is_dir()]


def _file(folder: Path) -> Path:
    (path,) = (item for item in folder.iterdir() if item.suffix in (".onnx", ".tflite"))
    return path


def _case(folder: Path, interpret: Callable[..., Any], targets: Sequence[str]) -> Case:
    path = _file(folder)
    try:
        result = _compared(path, interpret)
    except _UncheckedError as error:
        result = f"unchecked: {error}"
    except Exception as error:  # noqa: BLE001
        result = f"{failure(error)[0]}: {error}"
    return Case(folder.name, result, tuple(_built(path, target, interpret) for target in targets))


def _compared(path: Path, interpret: Callable[..., Any]) -> str:
    model = htvm.load(path)
    runs, oracle = _kept(path.parent), "outputs beside the file"
    if not runs:
        rng = np.random.default_rng(1)
        inputs = [_drawn(item.shape, item.dtype, rng) for item in model.inputs]
        oracle, wanted = _oracle(path, inputs, len(model.outputs))
        runs = [(inputs, wanted)]
    exact, close, count, differing, steps = True, True, 0, 0, 0.0
    for inputs, wanted in runs:
        for got, expected in zip(interpret(model.module, inputs).outputs, wanted, strict=True):
            expected = np.reshape(expected, got.shape)
            exact = exact and np.array_equal(got, expected)
            close = close and np.allclose(got, expected, rtol=1e-5, atol=1e-6)
            count, differing = count + got.size, differing + int((got != expected).sum())
            steps = max(steps, _steps(np.abs(got.astype(np.float64) - expected)))
    if exact:
        return f"exact ({oracle})"
    if close and model.outputs[0].dtype == "float32":
        return f"close: {differing} of {count} reals in their last bits ({oracle})"
    kind = "differs" if oracle == _UNOPTIMIZED else "wrong"
    return f"{kind}: {differing} of {count} elements, by at most {steps:.0f} steps ({oracle})"


def _steps(gaps: Any) -> float:
    """Return the largest difference in the smallest one, which is a step of the quantization."""
    return float(gaps.max() / gaps[gaps > 0].min()) if gaps.any() else 0.0


def _kept(folder: Path) -> list[tuple[list[Any], list[Any]]]:
    """Return inputs and outputs of the runs that are kept beside a file, if outputs are."""
    path = folder / "golden.npz"
    if not path.is_file():
        return []
    with np.load(path) as arrays:
        found = {name: arrays[name] for name in arrays.files}
    numbers = sorted({int(name[2:].split("_")[0]) for name in found if name.startswith("in")})

    def of(kind: str, number: int) -> list[Any]:
        names = [name for name in found if name.startswith(f"{kind}{number}_")]
        return [found[name] for name in sorted(names, key=lambda name: int(name.split("_")[1]))]

    return [(of("in", number), of("out", number)) for number in numbers]


def _drawn(shape: Sequence[int], dtype: str, rng: np.random.Generator) -> Any:
    if dtype == "float32":
        return rng.normal(size=shape).astype(np.float32)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def _oracle(path: Path, inputs: Sequence[Any], outputs: int) -> tuple[str, list[Any]]:
    """Return the name of the file's own runtime, and its results."""
    if path.suffix == ".tflite":
        results = micro.run(path.read_bytes(), list(inputs), outputs)
        if isinstance(results, str):
            raise RuntimeError(results)
        return "TFLite Micro", results
    name, session = "onnxruntime", exact_session(str(path))
    if session is None:  # such sessions cannot optimize some files
        name, session = _UNOPTIMIZED, exact_session(str(path), optimized=False)
    if session is None:
        raise _UncheckedError(NO_KERNEL)
    names = [item.name for item in session.get_inputs()]
    return name, list(session.run(None, dict(zip(names, inputs, strict=True))))


def _built(path: Path, target: str, interpret: Callable[..., Any]) -> str:
    begin = _processor_time()
    try:
        module = htvm.build(path, target, platform="host")
        rng = np.random.default_rng(1)
        inputs = [_drawn(item.shape, item.dtype, rng) for item in module.model.inputs]
        found = module.run(inputs).outputs
    except Exception as error:  # noqa: BLE001
        return f"{failure(error)[0]}: {error}"
    seconds = _processor_time() - begin
    wanted = interpret(module.compiled.retargeted.model.module, inputs).outputs
    if not all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True)):
        return "wrong: other results than its reference"
    size = sum(len(text) for text in model_sources(module.compiled.program).values())
    return f"equal, {seconds:.0f} s, {size / 1000:,.0f} kB of C"


def _processor_time() -> float:
    return sum(
        usage.ru_utime + usage.ru_stime for usage in map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN))
    )


_HEAD = """# Files met in the field

The first files of real exporters that were met, what the version of that day made of each, and what
becomes of it today. A file is read, run by the interpreter of the integer form and compared; then
it is built for the CPU alone and for DIANA, and what the program computes is compared with its
reference, after retargeting. Times are of the processor, from the file to the first result.

`python -m benchmarks.exporters.cases --write docs/exporter-cases.md` writes this page. The
files are not part of the project; [the exporters](exporters.md) write more of their kind.

The oracle is what the runtime computed that the file was made for: kept beside the file, or today.
Without optimization, onnxruntime has other kernels, which round otherwise than those of a default
session ([operators](operators.md)); it is named where there is no other whose sums do not saturate
on the CPU that this page was made on.

"""


def made_of() -> Iterator[RowSource]:
    """Our programs."""
    for name in BEFORE:
        folder = _FOLDER / name
        for target in TARGETS:
            model = partial(_model, folder)
            yield program(name, model, target, platform="host", needs=folder)


def _model(folder: Path) -> htvm.Model:
    return htvm.load(_file(folder))


def page(found: Sequence[Case]) -> str:
    """Return the page in Markdown."""
    lines = ["| case | then | read today | " + " | ".join(TARGETS) + " |"]
    lines += ["|---|---|---|" + "---|" * len(TARGETS)]
    for case in found:
        cells = (BEFORE[case.name], case.result, *case.builds)
        texts = (" ".join(cell.replace("|", "/").split()) for cell in cells)
        lines.append(f"| {case.name} | " + " | ".join(texts) + " |")
    return _HEAD + "\n".join(lines) + "\n"


def main() -> None:
    """Run all cases; print the page, and write it if asked."""
    logging.disable(logging.WARNING)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=_FOLDER, help="has those of cases")
    parser.add_argument("--write", type=Path, help="file for the page")
    arguments = parser.parse_args()
    from tests.reference.interpreter import interpret

    text = page(cases(arguments.folder, interpret))
    if arguments.write is not None:
        arguments.write.write_text(text, encoding="utf-8")
        record("exporter-cases", made_of())
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
