"""Rendering ``htvm_soc.h``: the SoC description as C constants.

Drivers, device models and linker glue read their numbers only from this header. Machine-wide names
start with ``HTVM_``, those of devices with the name of the SoC's driver: every integer field of a
DMA or accelerator dataclass becomes ``<DRIVER>_<DEVICE>_<FIELD>``, a tuple of integers a
comma-separated list for an initializer.  Fields of `CoreTiming` and `Cluster` become
``HTVM_CORE_<FIELD>`` and ``HTVM_CLUSTER_<FIELD>``.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from byoc_dory.errors import TargetError
from byoc_dory.soc.base import Soc

_BITS = {"zba", "zbb", "zbs", "zcb"}
"""Extensions that cores of the simulator have together, or not at all."""


def _value(name: str, value: int) -> str:
    is_address = name in ("registers", "base")
    return f"0x{value:08X}u" if is_address else f"{int(value)}u"  # a switch is 0 or 1


def _device(prefix: str, device: Any) -> list[str]:
    lines = []
    for field in fields(device):
        value = getattr(device, field.name)
        macro = f"{prefix}_{field.name}".upper()
        if isinstance(value, int):
            lines.append(f"#define {macro} {_value(field.name, value)}")
        elif isinstance(value, tuple) and value and all(isinstance(v, int) for v in value):
            lines.append(f"#define {macro} " + ", ".join(f"{v}u" for v in value))
    return lines


def render(soc: Soc) -> str:
    """Return the text of ``htvm_soc.h`` (the same text for the same description).

    Addresses, bytes and cycles are unsigned decimal or hexadecimal constants.

    Raises:
        TargetError: the description has a host that cannot be simulated.
    """
    lines = [
        f"/* {soc.title}: generated from its description; change it there. */",
        "#ifndef HTVM_SOC_H",
        "#define HTVM_SOC_H",
    ]
    for memory in soc.memories:
        lines += ["", f"/* {memory.title or memory.name} */"]
        lines.append(f"#define HTVM_{memory.name.upper()}_BASE 0x{memory.base:08X}u")
        lines.append(f"#define HTVM_{memory.name.upper()}_SIZE {memory.size}u")
        if memory.mapped:
            lines.append(f"#define HTVM_{memory.name.upper()}_MAPPED 1")
            lines.append(f"#define HTVM_{memory.name.upper()}_RESERVED {memory.reserved}u")
    constant_memories = [memory.name.upper() for memory in soc.memories if memory.constants]
    if constant_memories:
        lines += ["", "/* memories besides L2 that hold constants */"]
        listed = " ".join(f"each({name})" for name in constant_memories)
        lines.append(f"#define HTVM_CONSTANT_MEMORIES(each) {listed}")
    lines += [
        "",
        "/* registers of the simulator */",
        f"#define HTVM_SIM_PUTCHAR 0x{soc.sim.putchar:08X}u",
        f"#define HTVM_SIM_EXIT 0x{soc.sim.exit:08X}u",
        f"#define HTVM_SIM_TRACE 0x{soc.sim.trace:08X}u",
    ]
    if soc.host.corev and soc.host.timing is not None:
        raise TargetError(
            f"{soc.name}: the host has CORE-V extensions and a scoreboard",
            hint="the simulator has no such core: leave out Host.corev or Host.timing",
        )
    if soc.host.timing is not None:
        lines += ["", "/* timing of the cores: a scoreboard */", "#define HTVM_CORE_SCOREBOARD 1"]
        lines += _device("HTVM_CORE", soc.host.timing)
    if _BITS & set(soc.host.isa.split("_")):
        lines += ["", "/* Zba, Zbb, Zbs and Zcb */", "#define HTVM_CORE_BITS 1"]
    if soc.host.corev:
        lines += ["", "/* the PULP extensions in CORE-V encoding */", "#define HTVM_CORE_COREV 1"]
    if soc.cluster is not None:
        if soc.cluster.first + soc.cluster.cores > soc.cluster.harts:
            raise TargetError(
                f"{soc.name}: {soc.cluster.cores} cores from hart {soc.cluster.first} on, of "
                f"{soc.cluster.harts} harts",
                hint="Cluster.first + Cluster.cores must not exceed Cluster.harts",
            )
        lines += [
            "",
            "/* harts in addition to the host core */",
            *_device("HTVM_CLUSTER", soc.cluster),
        ]
        if soc.cluster.memory == "L2":
            # One memory in the simulator, with the code and constants that flash has on a chip.
            size = sum(soc.memory(name).size for name in {"L2", soc.code_memory})
            lines += [f"#define HTVM_CLUSTER_SHARED_SIZE {size}u"]
    driver = soc.driver.upper()
    if soc.dma is not None:
        lines += ["", "/* DMA */", *_device(f"{driver}_DMA", soc.dma)]
    for accelerator in soc.accelerators:
        prefix = f"{driver}_{accelerator.name.upper()}"
        lines += ["", f"/* {accelerator.title} */", *_device(prefix, accelerator)]
    lines += ["", "#endif", ""]
    return "\n".join(lines)
