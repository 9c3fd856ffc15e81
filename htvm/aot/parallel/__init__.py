"""CPU kernels on several cores: loops shared out among them, operands brought close to them.

For SoCs whose description has a cluster.  A kernel that was lowered to loops over pointers is cut
into parts (`phases`) whose loops every core may run a range of, which is proved by listing the
elements that each iteration reads and writes (`accesses`, `dependence`); its operands are given
places in the memory close to the cores (`staging`); and all that is printed as C over the
interface ``htvm_parallel.h``, which the SoC implements (`emit`).
"""

from __future__ import annotations

from htvm.aot.parallel.cores import Cores, cores_of
from htvm.aot.parallel.emit import HEADER, SharedKernel, share

__all__ = ["HEADER", "Cores", "SharedKernel", "cores_of", "share"]
