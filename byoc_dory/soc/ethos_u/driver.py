"""Arm's core driver, as whoever takes a network to a board must add it.

Public code (ethos-u-core-driver: CMakeLists.txt, README.md, ethosu_driver.h; Zephyr's
drivers/misc/ethos_u; Arm's CMSIS pack ethos-u-core-driver).
"""

from __future__ import annotations

from byoc_dory.soc.ethos_u.emit import FAILED, FOREIGN, MISALIGNED, NO_DRIVER
from byoc_dory.soc.vendor import CmsisComponent, VendorDriver


def core_driver(product: str, macs: int) -> VendorDriver:
    """Return the driver of an accelerator.

    Args:
        product: "U55" or "U65".
        macs: multiply-accumulates per cycle.
    """
    return VendorDriver(
        title="Arm's Ethos-U core driver",
        repository="https://gitlab.arm.com/artificial-intelligence/ethos-u/ethos-u-core-driver",
        header="ethosu_driver.h",
        include="include",
        sources=("src/ethosu_driver.c", "src/ethosu_device_u55_u65.c", "src/ethosu_pmu.c"),
        variable="HTVM_ETHOS_U_DRIVER",
        library="ethosu_core_driver",
        setting=f"ETHOSU_TARGET_NPU_CONFIG=ethos-{product.lower()}-{macs}",
        zephyr="ETHOS_U",
        cmsis=CmsisComponent(
            "ARM::ethos-u-core-driver", "NPU Support", "Ethos-U Driver", f"Generic {product}"
        ),
        begin="Register one driver with `ethosu_init` before the first run, and let the NPU's "
        "interrupt call `ethosu_irq_handler`, both with the addresses and numbers of your chip. "
        "Without a registered driver, `ethosu_reserve_driver` waits forever.",
        begin_zephyr="Zephyr registers a driver where the board's device tree has the NPU, and its "
        "option `CONFIG_ETHOS_U_DCACHE` has functions for the data cache.",
        duties=(
            f"The driver refuses commands for another NPU than Ethos-{product} with {macs} MACs "
            f"per cycle. The network then returns 0x{FAILED:X}, as after every failure of the "
            f"driver; 0x{NO_DRIVER:X} if it is given no driver.",
            "The network maintains the core's data cache itself: what the NPU uses of the arena "
            "has whole cache lines of 32 B, which are cleaned before a run and invalidated behind "
            "it (`htvm_cache.h`). The driver's own functions for that need not be overridden. "
            "Commands and weights are constants: if start-up code copies them to RAM, it must "
            "clean the cache. Define `HTVM_CACHE` as 0 for code that runs unprivileged, and see "
            "to it elsewhere.",
            "Commands, weights and arena begin at multiples of 16 B, as the C declares them; the "
            f"network returns 0x{MISALIGNED:X} if a linker script does not keep that. It returns "
            f"0x{FOREIGN:X} if commands or weights are those of another export.",
            "Commands and weights are constants and may stay in flash that the NPU can read. "
            "The arena must be in RAM that it can read and write, which tightly coupled memories "
            "usually are not.",
        ),
    )
