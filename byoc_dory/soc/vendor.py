"""Drivers that a vendor publishes: packages name them and do not carry them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CmsisComponent:
    """What a CMSIS project calls a component, and the pack that has it."""

    pack: str
    group: str
    sub: str
    variant: str


@dataclass(frozen=True)
class VendorDriver:
    """A driver of a device that its vendor publishes, and who takes a network home adds.

    Attributes:
        title: name in sentences.
        repository: address of its sources.
        header: the header that generated C includes.
        include: folder of its headers in the repository.
        sources: its C files in the repository.
        variable: CMake variable of packages that names the driver's library.
        library: the library's name in the driver's own CMakeLists.txt.
        setting: how these are told the device, ``NAME=value``.
        zephyr: Kconfig option that brings it in Zephyr.
        cmsis: the component in CMSIS projects.
        begin: what a program must do before the first run, as sentences in Markdown.
        begin_zephyr: the same where Zephyr brings the driver.
        duties: what else it must see to, each as sentences in Markdown.
    """

    title: str
    repository: str
    header: str
    include: str
    sources: tuple[str, ...]
    variable: str
    library: str
    setting: str
    zephyr: str
    cmsis: CmsisComponent
    begin: str
    begin_zephyr: str
    duties: tuple[str, ...]
