"""Published figures, to stand beside simulated ones.

Source: HTVM (Van Delm et al., DAC 2023), Table I, DIANA at 260 MHz.  The CPU column was compiled
for a core with SIMD instructions, which the simulated host lacks.
"""

from __future__ import annotations

from htvm.report.types import Published

__all__ = ["TABLE_I", "published"]

_SOURCE = "HTVM (DAC 2023), Table I: DIANA at 260 MHz, CPU code with SIMD"
_CPU = "TVM on the CPU"
_DIGITAL = "HTVM, CPU + digital core"

# (latency in ms or None for out of memory, size in kB), TVM on the CPU and HTVM digital.
TABLE_I: dict[str, tuple[tuple[float | None, int], tuple[float, int]]] = {
    "ds_cnn": ((48.24, 59), (1.75, 60)),
    "mobilenet_v1": ((None, 289), (5.68, 306)),
    "resnet8": ((134.11, 122), (1.19, 107)),
    "toyadmos": ((4.70, 287), (0.36, 315)),
}

# The MLPerf Tiny reference files have the same topologies up to the details named here.
_SAME = {
    "ds_cnn_7x5": ("ds_cnn", ""),
    "ds_cnn": ("ds_cnn", "its first filter is 7x5"),
    "kws_ref_model": ("ds_cnn", "its first filter is 7x5"),
    "mobilenet_v1": ("mobilenet_v1", ""),
    "vww_96_int8": ("mobilenet_v1", "with 4 classes"),
    "resnet8": ("resnet8", ""),
    "pretrainedResnet_quant": ("resnet8", "with 12 classes"),
    "toyadmos": ("toyadmos", ""),
    "ad01_int8": ("toyadmos", ""),
}


def published(network: str, target: str = "diana.digital") -> tuple[Published, ...]:
    """The published figures of a network on a target's SoC, CPU first; empty if there are none.

    Args:
        network: name of the model, e.g. "resnet8" or "pretrainedResnet_quant".
        target: what it is built for; figures exist for DIANA only.
    """
    if network not in _SAME or target.split(".")[0] != "diana":
        return ()
    row, remark = _SAME[network]
    (cpu_ms, cpu_kb), (digital_ms, digital_kb) = TABLE_I[row]
    return (
        Published(_CPU, cpu_ms, cpu_kb, _SOURCE, remark),
        Published(_DIGITAL, digital_ms, digital_kb, _SOURCE, remark),
    )
