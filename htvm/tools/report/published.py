"""Published figures, to be shown next to simulated ones.

Source: HTVM (Van Delm et al., DAC 2023), Table I, DIANA at 260 MHz.  The CPU column was compiled
for a core with SIMD instructions, which the simulated host lacks.
"""

from __future__ import annotations

from htvm.tools.report.compare import Published

_SOURCE = "HTVM (DAC 2023), Table I: DIANA at 260 MHz, CPU code with SIMD"
_CPU = "TVM on the CPU"
DIGITAL = "HTVM, CPU + digital core"
"""Name of the configuration that targets with the digital core are compared with."""
_ANALOG = "HTVM, CPU + analog core"
_BOTH = "HTVM, CPU + both cores, without transfers"

WHY_FASTER = (
    "Where ours is faster than published, the schedule is the reason: the constants of the cores "
    "and the DMA are fitted to the published figures, but tensors stay in L1 and transfers run "
    "beside the cores, which the chip is assumed to be able to queue. --schedule published leaves "
    "both out."
)
"""Notes to print next to the published figures (derived from Table I, not measured on the chip)."""

# (latency in ms or None for out of memory, size in kB), TVM on the CPU and HTVM digital.
TABLE_I: dict[str, tuple[tuple[float | None, int], tuple[float, int]]] = {
    "ds_cnn": ((48.24, 59), (1.75, 60)),
    "mobilenet_v1": ((None, 289), (5.68, 306)),
    "resnet8": ((134.11, 122), (1.19, 107)),
    "toyadmos": ((4.70, 287), (0.36, 315)),
}

ANALOG: dict[str, tuple[float, int]] = {
    "ds_cnn": (13.51, 93),
    "mobilenet_v1": (40.67, 239),
    "resnet8": (1.53, 129),
    "toyadmos": (0.80, 171),
}
"""Latency in ms and size in kB, HTVM on the CPU and the analog core."""

BOTH_PEAK: dict[str, tuple[float, int]] = {
    "ds_cnn": (1.66, 81),
    "mobilenet_v1": (5.39, 292),
    "resnet8": (0.61, 107),
    "toyadmos": (0.49, 274),
}
"""The same for the CPU and both cores, column "Peak": without the transfers between L2 and L1."""

# A network is recognised by its multiply-accumulates, which identify these networks exactly; file
# names say little.  Each has a remark on what to know when comparing it with the published one.
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
    """Return a network's published figures on a target's SoC, CPU first; empty if there are none.

    Args:
        macs: multiply-accumulates per inference, which identify the network.
        target: the target of the build; figures exist for DIANA only, as it was made: there are
            none for other values of its parameters.
    """
    if macs not in _KNOWN or target.split(".")[0] != "diana" or ":" in target:
        return ()
    row, remark = _KNOWN[macs]
    cpu, digital = TABLE_I[row]
    name, figures = {
        "diana.analog": (_ANALOG, ANALOG[row]),
        "diana.mixed": (_BOTH, BOTH_PEAK[row]),
    }.get(target.replace(".simd", ""), (DIGITAL, digital))
    return (
        Published(_CPU, *cpu, _SOURCE, remark),
        Published(name, *figures, _SOURCE, remark),
    )
