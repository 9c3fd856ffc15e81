"""Joint planning of a region: tiles, double buffers, and which tensors stay in L1.

`choices` has the choices of each layer, `problem` tells which of them fit together, `milp` picks,
`tensors` assigns offsets; `plan_jointly` combines all of them.
"""

from byoc_dory.residency.joint import ChoiceCache, plan_jointly

__all__ = ["ChoiceCache", "plan_jointly"]
