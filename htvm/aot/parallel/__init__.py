"""CPU kernels on several cores: sharing loops, and staging operands close to the cores.

For SoCs whose description has a cluster.  A kernel that was lowered to loops over pointers is cut
into parts (`phases`) of whose loops every core may run a range, which is proved by listing the
elements that each iteration reads and writes (`accesses`, `dependence`); its operands are placed in
the memory close to the cores, and everything is printed as C on top of the interface
``htvm_parallel.h``, which the SoC implements (`emit`).
"""

from __future__ import annotations

from htvm.aot.parallel.emit import share
from htvm.aot.parallel.phases import Cores, cores_of

__all__ = ["Cores", "cores_of", "share"]
