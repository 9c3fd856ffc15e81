"""How many cycles things take: one object answers, for a SoC and options of the tiler."""

from byoc_dory.cost.cost import Cost
from byoc_dory.cost.host import Basis, HostEstimates

__all__ = ["Basis", "Cost", "HostEstimates"]
