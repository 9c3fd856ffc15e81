"""Joint planning of a region: tiles, double buffers, and which tensors stay in L1.

`choices` has the choices of each layer, `region_choices` those of a region; `problem` tells which
of them fit together, `milp` picks, `tensors` assigns offsets. `pairs` and `preloads` find what a
layer does for the next one. `plan_jointly` combines all of them.
"""

from byoc_dory.residency.joint import plan_jointly
from byoc_dory.residency.region_choices import ChoiceCache

__all__ = ["ChoiceCache", "plan_jointly"]
