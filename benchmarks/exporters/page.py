"""The page that says what became of every export."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from benchmarks.exporters.check import Outcome

__all__ = ["page"]

_RESULTS = ("exact", "quantized", "one step", "refused", "unchecked", "wrong", "crashed")

_HEAD = """# Files of real exporters

Small networks of the usual architectures with seeded weights, as real exporters write them: torch
with its ONNX exporter and onnxruntime's static quantizer (QDQ and QOperator, int8 and uint8, per
tensor and per channel, symmetric or not), and Keras with the TFLite converter (as it is, and fully
int8 with borders of float32, int8 and uint8). Each file is read and run by the interpreter of the
integer form on two random inputs.

`python -m benchmarks.exporters --write docs/exporters.md` makes the files, each exporter in an
environment of its own, and writes this page; a slow test does the same with one network of each.

- *exact*: every element equals that of the runtime named beside it. onnxruntime is a default
  session whose sums do not saturate (on x86-64 without VNNI they do, unless asked not to),
  without the transformer that rounds weights which a file has as reals; where parts of a
  network stay in reals, float32 sums may differ in their last bits. *onnxruntime without
  optimization* is named where only that is equal.
- *quantized*: a float network, quantized by `htvm.quantize`; the decibels are those from its own
  float results, with 16 random samples for calibration.
- *one step*: no element is farther than one step of its quantization. LiteRT's dense layers with a
  scale per channel round otherwise than TFLite Micro's, which ours equal; TFLite Micro itself lacks
  operators of these networks, so it cannot be the oracle of the whole.
- *unchecked*: read, but on the CPU that the files were made on, onnxruntime has no session for it
  whose sums do not saturate, so there is nothing to compare with.

Files that an exporter, or its own runtime, refuses are not counted: TensorFlow writes a TILE for
repeated pixels in int8 that LiteRT does not run.
"""


def page(found: Sequence[Outcome], versions: str) -> str:
    """Return the page in Markdown.

    Args:
        found: the outcomes.
        versions: packages and versions that made the files.
    """
    lines = [_HEAD, f"Made with {versions}.", ""]
    lines += ["| exporter | files | " + " | ".join(_RESULTS) + " |"]
    lines += ["|---|--:|" + "--:|" * len(_RESULTS)]
    for exporter in ("torch", "keras"):
        counts = Counter(item.result for item in found if item.exporter == exporter)
        cells = " | ".join(str(counts[result]) for result in _RESULTS)
        lines.append(f"| {exporter} | {sum(counts.values())} | {cells} |")
    for exporter in ("torch", "keras"):
        rows = [item for item in found if item.exporter == exporter]
        ways = list(dict.fromkeys(item.way for item in rows))
        lines += ["", f"## {exporter}", "", "| network | " + " | ".join(ways) + " |"]
        lines += ["|---|" + "---|" * len(ways)]
        cells_of: dict[str, dict[str, str]] = {}
        for item in rows:
            cells_of.setdefault(item.network, {})[item.way] = _cell(item)
        for network, cells in cells_of.items():
            lines.append(f"| {network} | " + " | ".join(cells.get(way, "") for way in ways) + " |")
    return "\n".join(lines) + "\n"


def _cell(item: Outcome) -> str:
    detail = " ".join(item.detail.replace("|", "/").split())
    if item.result == "exact" and detail in ("onnxruntime", "TFLite Micro"):
        return "exact"
    return f"{item.result}: {detail}" if detail else item.result
