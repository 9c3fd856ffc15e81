"""Published figures, to stand beside simulated ones.

Source: HTVM (Van Delm et al., DAC 2023), Table I, DIANA at 260 MHz.  The CPU column was compiled
for a core with SIMD instructions, which the simulated host lacks.
"""

from __future__ import annotations

from htvm.report.types import Published

__all__ = ["TABLE_I", "WHY_FASTER", "published"]

_SOURCE = "HTVM (DAC 2023), Table I: DIANA at 260 MHz, CPU code with SIMD"
_CPU = "TVM on the CPU"
_DIGITAL = "HTVM, CPU + digital core"

WHY_FASTER = (
    "Where ours is faster than published, the schedule is the reason, not faster hardware: the "
    "constants of the digital core and the DMA are fitted to the published figures. By that fit "
    "the published runs moved the operands of every add row by row (about 110,000 cycles on "
    "ResNet-8) and spent more host cycles on layouts, pooling and softmax (67,000); here adds move "
    "as whole maps, and layouts change a word at a time."
)
"""To print beside the published figures (derived from Table I, not measured on the chip)."""

# (latency in ms or None for out of memory, size in kB), TVM on the CPU and HTVM digital.
TABLE_I: dict[str, tuple[tuple[float | None, int], tuple[float, int]]] = {
    "ds_cnn": ((48.24, 59), (1.75, 60)),
    "mobilenet_v1": ((None, 289), (5.68, 306)),
    "resnet8": ((134.11, 122), (1.19, 107)),
    "toyadmos": ((4.70, 287), (0.36, 315)),
}

# How a network is recognised: by its multiply-accumulates, which tell these apart exactly, because
# file names say little.  With each, what must be known to compare it with the published one.
_KNOWN = {
    2_616_768: ("ds_cnn", ""),
    2_656_768: ("ds_cnn", "published with a first filter of 7x5"),
    7_490_176: ("mobilenet_v1", ""),
    7_489_664: ("mobilenet_v1", "published with 4 classes"),
    12_501_760: ("resnet8", ""),
    12_501_632: ("resnet8", "published with 12 classes"),
    264_192: ("toyadmos", ""),
}


def published(macs: int, target: str = "diana.digital") -> tuple[Published, ...]:
    """The published figures of a network on a target's SoC, CPU first; empty if there are none.

    Args:
        macs: multiply-accumulates of one inference, by which the network is recognised.
        target: what it is built for; figures exist for DIANA only.
    """
    if macs not in _KNOWN or target.split(".")[0] != "diana":
        return ()
    row, remark = _KNOWN[macs]
    (cpu_ms, cpu_kb), (digital_ms, digital_kb) = TABLE_I[row]
    return (
        Published(_CPU, cpu_ms, cpu_kb, _SOURCE, remark),
        Published(_DIGITAL, digital_ms, digital_kb, _SOURCE, remark),
    )
