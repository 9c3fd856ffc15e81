"""Networks of torch and ONNX on Cortex-M cores: arena, code and instructions, then and today.

    python -m benchmarks.exporters.cores [--write docs/exporter-cores.md]

Until the sums of a layer stayed in registers, onnxruntime's requantization was a kernel of its own,
which read them from int32 maps in the arena.  The networks are the zoo's digits and files that
torch's exporter and onnxruntime's quantizer wrote, which are no part of this project.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

import htvm
from benchmarks.made_of import RowSource, program, record
from htvm.inputs import seeded_inputs
from htvm.tools.cli.arguments import open_model

__all__ = ["BEFORE", "CORES", "Counted", "counted", "made_of", "page"]

CORES = ("cortex_m0plus", "cortex_m4", "cortex_m55")

_SHARED = Path(__file__).parents[3] / "shared" / "models"
_FILES = {
    "digits": None,
    "CNN, per tensor": _SHARED / "qdq_onnx" / "tinycnn_qdq_pertensor.onnx",
    "CNN, per channel": _SHARED / "qdq_onnx" / "tinycnn_qdq_perchannel.onnx",
    "two residual blocks": _SHARED / "exporters" / "qdq_symmetric_add_relu_slow" / "model.onnx",
    "DenseNet": _SHARED / "exporters" / "torch_Dense_qdq_s8pc" / "model.onnx",
    "several inputs": _SHARED / "exporters" / "torch_Multi_qdq_u8s8" / "model.onnx",
}


@dataclass(frozen=True)
class Counted:
    """A network on a core.

    Attributes:
        arena, code: bytes.
        instructions: of one inference.
        equal: whether all outputs equal the reference.
    """

    arena: int
    code: int
    instructions: int
    equal: bool = True


BEFORE: dict[tuple[str, str], Counted] = {
    ("digits", "cortex_m0plus"): Counted(16_624, 20_320, 4_878_224),
    ("digits", "cortex_m4"): Counted(15_456, 20_624, 1_483_646),
    ("digits", "cortex_m55"): Counted(15_568, 23_312, 533_862),
    ("CNN, per tensor", "cortex_m0plus"): Counted(24_672, 16_016, 5_837_456),
    ("CNN, per tensor", "cortex_m4"): Counted(24_576, 18_304, 2_381_599),
    ("CNN, per tensor", "cortex_m55"): Counted(24_720, 18_576, 1_631_709),
    ("CNN, per channel", "cortex_m0plus"): Counted(24_672, 16_128, 5_779_671),
    ("CNN, per channel", "cortex_m4"): Counted(24_576, 18_624, 2_334_973),
    ("CNN, per channel", "cortex_m55"): Counted(24_720, 21_968, 1_596_493),
    ("two residual blocks", "cortex_m0plus"): Counted(8_064, 14_304, 2_045_557),
    ("two residual blocks", "cortex_m4"): Counted(7_760, 15_264, 785_135),
    ("two residual blocks", "cortex_m55"): Counted(7_824, 14_144, 608_211),
    ("DenseNet", "cortex_m0plus"): Counted(198_064, 23_136, 84_235_693),
    ("DenseNet", "cortex_m4"): Counted(197_792, 24_064, 27_769_393),
    ("DenseNet", "cortex_m55"): Counted(198_128, 36_048, 12_143_141),
    ("several inputs", "cortex_m0plus"): Counted(2_800, 17_744, 660_045),
    ("several inputs", "cortex_m4"): Counted(2_800, 20_256, 315_630),
    ("several inputs", "cortex_m55"): Counted(3_168, 25_408, 249_586),
}
"""Measured when the requantization was a kernel of its own."""


def model_of(name: str) -> htvm.Model:
    """Return a network by its name."""
    path = _FILES[name]
    return open_model("zoo:digits") if path is None else htvm.load(path)


def counted(name: str, core: str) -> Counted:
    """Build a network for a core and run it once."""
    module = htvm.build(model_of(name), core)
    inputs = seeded_inputs(module.compiled.source.inputs)
    result = module.run(inputs)
    pairs = zip(result.outputs, module.reference(inputs), strict=True)
    assert result.instructions is not None
    return Counted(
        module.sizes.arena,
        module.sizes.code,
        result.instructions,
        all(np.array_equal(one, other) for one, other in pairs),
    )


def made_of() -> Iterator[RowSource]:
    """Our programs."""
    for name, path in _FILES.items():
        for core in CORES:
            yield program(name, partial(model_of, name), core, needs=path)


_HEAD = """# Networks of torch and ONNX on Cortex-M cores

Then, onnxruntime's requantization was a kernel of its own, which read the sums of a layer from an
int32 map in the arena; today sums stay in registers until they are requantized, as those of TFLite
files always did. Counts are **instructions of one inference, not cycles**; all outputs equal the
reference. `python -m benchmarks.exporters.cores --write docs/exporter-cores.md` measures them and
writes this page; besides the zoo's digits, the files are not part of the project.

| network | core | arena B, then | today | code B, then | today | instructions, then | today | |
|---|---|--:|--:|--:|--:|--:|--:|--:|
"""


def page(rows: Sequence[tuple[str, str, Counted]]) -> str:
    """Return the page in Markdown."""
    lines = []
    for name, core, now in rows:
        then = BEFORE[name, core]
        pairs = ((then.arena, now.arena), (then.code, now.code))
        pairs = (*pairs, (then.instructions, now.instructions))
        cells = [f"{figure:,}" for pair in pairs for figure in pair]
        ratio = f"{now.instructions / then.instructions:.0%}" + ("" if now.equal else ", WRONG")
        lines.append(f"| {name} | {core} | " + " | ".join([*cells, ratio]) + " |\n")
    return _HEAD + "".join(lines)


def main() -> int:
    """Measure all networks that are at hand; the result is 1 if an output is wrong."""
    logging.disable(logging.WARNING)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="file for the page")
    arguments = parser.parse_args()
    names = [name for name, path in _FILES.items() if path is None or path.is_file()]
    rows = [(name, core, counted(name, core)) for name in names for core in CORES]
    text = page(rows)
    if arguments.write is not None:
        arguments.write.write_text(text, encoding="utf-8")
        record("exporter-cores", made_of())
    sys.stdout.write(text)
    return int(not all(now.equal for _, _, now in rows))


if __name__ == "__main__":
    sys.exit(main())
