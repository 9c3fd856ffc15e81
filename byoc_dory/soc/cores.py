"""The cores that execute programs: the host, and the harts of a cluster beside it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Cluster", "CoreTiming", "Host", "HostCost"]


@dataclass(frozen=True)
class HostCost:
    """Rough cycles of CPU kernels, for estimates in verdicts only (runs measure the real ones).

    Attributes:
        conv_mac, pointwise_mac, dense_mac, depthwise_mac: cycles per multiply-accumulate.
        add_element: cycles per element.
        pool_element: cycles per element that a pool's windows read.
        softmax_element: cycles per element of a softmax.
        move_element: cycles per element of a conversion, padding or concatenation.
        real_element: cycles per element of an operator in reals, which are computed in software.
        layout_byte: cycles per byte that enters or leaves an accelerator's layout.
    """

    conv_mac: float
    pointwise_mac: float
    dense_mac: float
    depthwise_mac: float
    add_element: float
    pool_element: float
    softmax_element: float
    move_element: float
    real_element: float
    layout_byte: float


@dataclass(frozen=True)
class CoreTiming:
    """Timing of an in-order core that issues one instruction per cycle and keeps a scoreboard.

    An instruction issues when its operands are there and its destination is not awaited; results
    come the given number of cycles after it issued, while later instructions go on.  One cycle
    for everything else, control and status registers included.

    Attributes:
        load: cycles until the result of a load from L1 can be used.
        multiply: the same of a multiplication; the multiplier is pipelined.
        divide: the same of a division or remainder; the divider takes one at a time.
        atomic: the same of an atomic operation in L1, or of a load-reserved or store-conditional.
        redirect: cycles that a taken branch or a jump costs beyond the first.
        far: cycles until the result of a load from L2 can be used, or a store to it is done.
        far_outstanding: accesses to L2 that can be under way at once; one more waits.
        register: cycles until the value of a device register can be used.
    """

    load: int
    multiply: int
    divide: int
    atomic: int
    redirect: int
    far: int
    far_outstanding: int
    register: int


@dataclass(frozen=True)
class Cluster:
    """Harts beside the host core, which is hart 0, and what they share.

    Attributes:
        harts: all of them, the host core included.
        cores: those that execute kernels: harts 0 to ``cores`` - 1.
        registers: device address of the cluster's control registers: mask, barrier, wake.
        worker_stack: bytes of L1 for the stack of each hart but the host core.
        banks: banks of L1, interleaved; one access per cycle each.
        bank_bytes: width of a bank.
        release: cycles from the last hart's arrival at a barrier until all go on.
        wake: cycles from a wake-up until the hart goes on.
        memory: name of the memory close to the cores; kernels that no accelerator takes bring
            their operands there (``runtime_c/include/htvm_parallel.h``).
    """

    harts: int
    cores: int
    registers: int
    worker_stack: int
    banks: int
    bank_bytes: int
    release: int
    wake: int
    memory: str = "L1"


@dataclass(frozen=True)
class Host:
    """The host core that runs the firmware.

    Attributes:
        name: what it is called in reports.
        isa: instruction set for which firmware is compiled.
        stack: bytes reserved for the stack (the simulator reports how much is used).
        cost: estimates for CPU kernels.
        stack_memory: where the stack is: at the end of L2, or at the end of the reserved bytes of
            another memory.
        timing: of a core with a scoreboard; None: the rules of the CV32E40P
            (``runtime_c/iss/timing.h``).
    """

    name: str
    isa: str
    stack: int
    cost: HostCost
    stack_memory: str = "L2"
    timing: CoreTiming | None = None
