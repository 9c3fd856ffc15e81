"""The accelerator as placement, planning and code generation see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from byoc_dory.emit import RegionEmitter
from byoc_dory.options import TilingOptions
from byoc_dory.soc.base import Rules, Soc
from byoc_dory.soc.ethos_u.check import ProgramCheck
from byoc_dory.soc.ethos_u.core import EthosUCore
from byoc_dory.soc.ethos_u.driver import core_driver
from byoc_dory.soc.ethos_u.emit import EthosUEmitter
from byoc_dory.soc.ethos_u.rules import rules_of
from byoc_dory.soc.regions import RegionCheck
from byoc_dory.soc.vendor import VendorDriver


@dataclass(frozen=True)
class EthosU(EthosUCore):
    """An Ethos-U55 or U65, its rules and C."""

    @property
    def rules(self) -> Rules:
        """See `byoc_dory.soc.ethos_u.rules`."""
        return rules_of(self.name)

    @property
    def vendor_driver(self) -> VendorDriver:
        """Arm's core driver."""
        return core_driver(self.architecture.removeprefix("Ethos"), self.macs)

    def region_check(self, soc: Soc, options: TilingOptions) -> Callable[[Path], RegionCheck]:
        """Return what executes a region once on the model of the device."""
        return partial(ProgramCheck, settings=self.settings(soc, options))

    def emitter(self, soc: Soc) -> RegionEmitter:
        """Return what lets Vela compile regions, and writes their C."""
        return EthosUEmitter(self, soc)
