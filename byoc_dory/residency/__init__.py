"""Joint planning of a region: tiles, double buffers, and which tensors stay in L1.

`choices` asks what each layer offers, `problem` says what fits together, `milp` picks, `placement`
finds the offsets; `plan_jointly` is all of it.
"""

from byoc_dory.residency.joint import plan_jointly

__all__ = ["plan_jointly"]
