"""The tables of `benchmarks.boards`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from byoc_dory.soc.registry import board_target, resolve
from htvm.tools.report.table import Column, Table, text

__all__ = ["PUBLISHED", "Row", "written"]

PUBLISHED: Mapping[str, tuple[str, str, int, Mapping[str, float]]] = {
    "cortex_m4": (
        "STM32L4R5, X-CUBE-AI, v1.2", "nucleo-l4r5zi", 120,
        {"ResNet-8": 165.1, "DS-CNN": 43.2, "MobileNet": 88.9, "autoencoder": 5.26},
    ),
    "cortex_m33": (
        "STM32U575, v1.3", "", 160,
        {"ResNet-8": 109.5, "DS-CNN": 29.0, "MobileNet": 59.3, "autoencoder": 3.21},
    ),
    "cortex_m7": (
        "STM32H7A3, v1.2", "nucleo-h7a3zi-q", 280,
        {"ResNet-8": 40.8, "DS-CNN": 11.3, "MobileNet": 23.8, "autoencoder": 1.23},
    ),
    "cortex_m0plus": (
        "STM32G0B1, v1.2", "nucleo-g0b1re", 64,
        {"ResNet-8": 1522.0, "DS-CNN": 475.0, "MobileNet": 1414.0, "autoencoder": 40.9},
    ),
}  # fmt: skip
"""Core -> chip and round, our board of it, its clock in MHz, milliseconds of each network."""

TABLE = (
    Column("network"),
    Column("target"),
    Column("emulator"),
    Column("equal"),
    Column("QEMU"),
    Column("instructions", number=True),
    Column("per MAC", number=True),
    Column("flash B", number=True),
    Column("RAM B", number=True),
    Column("stack B", number=True),
)
BESIDE = (
    Column("network"),
    Column("core"),
    Column("instructions/MAC", number=True),
    Column("estimated cycles", number=True),
    Column("per MAC", number=True),
    Column("estimated ms", number=True),
    Column("published ms", number=True),
    Column("published cycles/MAC", number=True),
    Column("measured on"),
)


@dataclass(frozen=True)
class Row:
    """One network on one target.

    Attributes:
        network, target: names.
        emulator: what executed it; empty if nothing here does.
        equal: whether every element was equal; None without an execution.
        qemu: the same on QEMU; None where it is not installed or has no such machine.
        instructions: of one inference; None without a count.
        estimate: the fewest and the most cycles by the core's manual; None if it gives none.
        macs: of one inference.
        flash, ram: bytes; RAM with the stack as measured, or reserved if nothing measured
            it; None for programs of Linux.
        stack: bytes that a run used; None without one.
    """

    network: str
    target: str
    emulator: str
    equal: bool | None
    qemu: bool | None
    instructions: int | None
    macs: int
    flash: int | None
    ram: int | None
    stack: int | None
    estimate: tuple[int, int] | None = None


def written(rows: list[Row]) -> str:
    """Return the tables of all rows."""
    beside = [row for row in rows if row.network in PUBLISHED.get(row.target, ("", "", 0, {}))[3]]
    parts = [
        text(Table(TABLE, tuple(map(_cells, rows)))),
        "equal: element for element, with TFLite Micro's outputs for the TFLite files, else with "
        "TVM's code on\nthis machine. RISC-V cores are simulated with the timing of another core; "
        "its cycles are not given here.\nThe M55's instructions are counted in QEMU's log of what "
        "it executes.\ns390x (big-endian), aarch64 and riscv64 (64 bits): the C for cortex_m4 as a "
        "program of Linux, which counts\nnothing.",
    ]
    if beside:
        title = (
            "beside what others measured on chips (MLPerf Tiny, closed division, published), with "
            "their own\nsoftware.  Ours are estimates, not measured: the cycles that the manual of "
            "the core gives for the\nexecuted instructions, from memory without wait states, at "
            "the clock of the chip.  The M7 and the M33\nhave no such manual."
        )
        slower = [f"{row.network} on {row.target}" for row in beside if _is_slower(row)]
        if slower:
            parts.append(f"slower than published, by our estimate: {', '.join(slower)}")
        parts.append(text(Table(BESIDE, tuple(map(_beside, beside)), title=title)))
    fit = [_fit(row) for row in beside if PUBLISHED[row.target][1]]
    if fit:
        parts.append("all of these fit their boards: " + ("yes" if all(fit) else "NO"))
    return "\n\n".join(parts)


def _fit(row: Row) -> bool:
    flash, ram = resolve(board_target(PUBLISHED[row.target][1])).soc.memories
    assert row.flash is not None and row.ram is not None
    return row.flash <= flash.size and row.ram <= ram.size


def _cells(row: Row) -> tuple[str, ...]:
    said = {None: "-", True: "yes", False: "NO"}
    counted = row.instructions is not None
    return (
        row.network,
        row.target,
        row.emulator or "none",
        said[row.equal],
        said[row.qemu],
        f"{row.instructions:,}" if counted else "-",
        f"{(row.instructions or 0) / row.macs:.2f}" if counted else "-",
        "-" if row.flash is None else f"{row.flash:,}",
        "-" if row.ram is None else f"{row.ram:,}",
        "-" if row.stack is None else f"{row.stack:,}",
    )


def _beside(row: Row) -> tuple[str, ...]:
    chip, _, megahertz, published = PUBLISHED[row.target]
    milliseconds = published[row.network]
    assert row.instructions is not None
    estimates = ("-", "-", "-")
    if row.estimate is not None:
        estimates = (
            _span(row.estimate, 1, ",.0f"),
            _span(row.estimate, row.macs, ".2f"),
            _span(row.estimate, megahertz * 1000, ".2f"),
        )
    return (
        row.network,
        row.target,
        f"{row.instructions / row.macs:.2f}",
        *estimates,
        f"{milliseconds:g}",
        f"{milliseconds * megahertz * 1000 / row.macs:.2f}",
        f"{chip}, {megahertz} MHz",
    )


def _is_slower(row: Row) -> bool:
    _, _, megahertz, published = PUBLISHED[row.target]
    if row.estimate is None:
        return False
    return sum(row.estimate) / 2 > published[row.network] * megahertz * 1000


def _span(cycles: tuple[int, int], unit: int, how: str) -> str:
    """Return the fewest and the most as one number if they are equal."""
    return "..".join(dict.fromkeys(format(number / unit, how) for number in cycles))
