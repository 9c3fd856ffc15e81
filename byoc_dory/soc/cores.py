"""The cores that execute programs: the host, and the harts of a cluster."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True)
class HostCost:
    """Rough cycles of CPU kernels, only for estimates in verdicts (runs measure the real ones).

    Attributes:
        conv_mac, pointwise_mac, dense_mac, depthwise_mac: cycles per multiply-accumulate.
        add_element: cycles per element.
        pool_element: cycles per element that a pool's windows read.
        softmax_element: cycles per element of a softmax.
        move_element: cycles per element of a conversion, padding or concatenation.
        real_element: cycles per element of an operator in reals, which is computed in software.
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
class RowCost:
    """Rough instructions that rows take beside their products, by which chains of rows are chosen.

    Attributes:
        call: of calling a row's kernel.
        byte: per byte that is copied or moved.
        idle_mac: per multiply-accumulate of a pixel that a block of several computes for nothing.
        lone: per output of a depthwise convolution in blocks of pixels, beyond its products.
        banded: the same in bands of many rows.
        pairs: the same in bands of few rows, for each row of their input by those of the output.
        line: the same in single rows.
        channel: per channel of such a band or row.
        part: of each part of an image's row but the first.
        pairs_call: of a call that multiplies pairs of pixels.
    """

    call: float
    byte: float
    idle_mac: float
    lone: float
    banded: float
    pairs: float
    line: float
    channel: float
    part: float
    pairs_call: float


ROW_COST = RowCost(
    call=70,
    byte=0.6,
    idle_mac=1.0,
    lone=8.7,
    banded=4.5,
    pairs=1.4,
    line=1.3,
    channel=50,
    part=55,
    pairs_call=40,
)
"""Counted in the emulator of a Cortex-M4; other cores choose by the same proportions."""


@dataclass(frozen=True)
class CoreTiming:
    """Timing of an in-order core that issues one instruction per cycle and has a scoreboard.

    An instruction issues when its operands are ready and its destination is not pending; its result
    is ready the given number of cycles after that, while later instructions continue.  All other
    instructions, including those on control and status registers, take one cycle.

    Attributes:
        load: cycles until the result of a load from L1 is ready.
        multiply: cycles until the result of a multiplication is ready; the multiplier is pipelined.
        divide: cycles until the result of a division or remainder is ready; the divider is not
            pipelined.
        atomic: cycles until the result of an atomic operation in L1, or of a load-reserved or
            store-conditional, is ready.
        redirect: cycles that a taken branch or a jump costs in addition to the first.
        far: cycles until the result of a load from L2 is ready, or a store to it is done.
        far_outstanding: number of accesses to L2 that can be under way at once; a further one
            waits.
        register: cycles until the value of a device register is ready.
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
    """The harts besides the host core, which is hart 0, and their shared resources.

    Attributes:
        harts: number of harts, including the host core.
        cores: number of harts that execute kernels: ``first`` to ``first + cores - 1``.
        registers: device address of the cluster's control registers: mask, barrier, wake.
        worker_stack: bytes for the stack of each hart except the host core, where its own is.
        banks: number of interleaved banks of that memory, with one access per cycle each.
        bank_bytes: width of a bank in bytes.
        release: cycles from the last hart's arrival at a barrier until all continue.
        wake: cycles from a wake-up until the hart continues.
        memory: name of the memory close to the cores; kernels that no accelerator takes copy their
            operands there (``runtime_c/include/htvm_parallel.h``). If it is "L2", there is none,
            and operands stay where they are.
        first: number of the first hart that executes kernels. If it is 0, the host core computes
            with the others; otherwise it is a controller, and goes on while they compute.
        far_wait: cycles that a core waits for each access to memory outside of L1. Only for the
            pipeline of the CV32E40P, which does not run ahead of a load; `CoreTiming` has the
            latencies of other cores.
        register_wait: the same for each access to a device register.
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
    first: int = 0
    far_wait: int = 0
    register_wait: int = 0


@dataclass(frozen=True)
class ArmCycles:
    """Cycles per instruction that the manual of a Cortex-M core publishes.

    They hold for memory without wait states.  Each is the fewest and the most.  All other
    instructions take one cycle.

    Attributes:
        source: where they are published.
        load: a load of one register.
        next_load: the same directly behind another load or store, if its address does not depend
            on that.
        store: a store of one register.
        multiple: a load or store of several registers, in addition to one for each of them.
        multiply: a product of words with a result of one word.
        accumulate: the same with a sum or difference.
        long_multiply: a product of words with a result of two words.
        long_accumulate: the same with a sum.
        divide: a division.
        refill: a branch that is taken, in addition to its own cycle.
        call: a call, in addition to that.
        return_load: a load of the program counter, in addition to that.
    """

    source: str
    load: tuple[int, int]
    next_load: tuple[int, int]
    store: tuple[int, int]
    multiple: tuple[int, int]
    multiply: tuple[int, int]
    accumulate: tuple[int, int]
    long_multiply: tuple[int, int]
    long_accumulate: tuple[int, int]
    divide: tuple[int, int]
    refill: tuple[int, int]
    call: tuple[int, int] = (0, 0)
    return_load: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class FlashReads:
    """How a chip's flash is read at the highest clock of its core.

    Attributes:
        waits: wait states, the cycles that a read of a line takes beside its first.
        line_bytes: bytes that are read at once.
        code_lines, data_lines: lines that its interface keeps of code, and of constants; a new one
            replaces the one that was used longest ago.
    """

    waits: int
    line_bytes: int
    code_lines: int
    data_lines: int


@dataclass(frozen=True)
class QemuMachine:
    """A machine that QEMU models.

    Attributes:
        name: QEMU's name of it.
        flash, ram: address of the first byte, and size in bytes.
    """

    name: str
    flash: tuple[int, int]
    ram: tuple[int, int]


@dataclass(frozen=True)
class ArmCore:
    """A Cortex-M core, as the tools call it.

    Attributes:
        cpu: the compiler's name, as in ``-mcpu=cortex-m4``.
        extension: what its kernels use beyond the scalar instructions: "dsp", products of pairs of
            halfwords (SMLAD) and others; "mve", vectors of 16 bytes (Helium); empty for nothing.
        emulator: the emulator's name for the core that executes its programs: itself, or one with
            the same instructions; empty if it has none.
        qemu: QEMU's machine with this core, or with `like`; None if this project knows none.
        cycles: cycles per instruction, for estimates; None if its manual publishes none, or
            instructions are issued in pairs.
        like: core with the same instructions, which older tools know; empty if none is needed.
        gcc: first version of GCC that knows this core; None if every one does that can compile for
            it at all.
        dual: whether it issues two instructions at once; loops of "dsp" then have their loads
            beside products.
    """

    cpu: str
    extension: Literal["", "dsp", "mve"]
    emulator: str
    cycles: ArmCycles | None = None
    qemu: QemuMachine | None = None
    like: str = ""
    gcc: str | None = None
    dual: bool = False


@dataclass(frozen=True)
class RiscvVectors:
    """The vector unit of a RISC-V core (version 1.0 of the extension).

    Attributes:
        bits: of a vector register (VLEN).  Firmware does not depend on it: one program computes as
            many elements at once as the core that it meets.
        emulator: QEMU's name of a core with these instructions, or more.
    """

    bits: int
    emulator: str


@dataclass(frozen=True)
class XtensaCore:
    """An Xtensa core.

    Attributes:
        gcc: name of a GCC whose programs the emulator executes.
        emulator: QEMU's name of a core whose instructions are among this one's.
        flash, ram: addresses of both in the emulator, which has none from 1 GiB on.
    """

    gcc: str
    emulator: str
    flash: int
    ram: int


@dataclass(frozen=True)
class Host:
    """The host core that runs the firmware.

    Attributes:
        name: name in reports.
        isa: instruction set that firmware is compiled for.
        stack: bytes reserved for the stack (the simulator reports how many are used).
        cost: estimates for CPU kernels.
        stack_memory: name of the memory with the stack: at the end of L2, or at the end of the
            reserved bytes of another memory.
        timing: timing of a core with a scoreboard; None for the pipeline of the CV32E40P
            (``runtime_c/iss/timing.h``), which then all harts of a cluster have.
        corev: whether the core has the PULP extensions in CORE-V encoding (SIMD,
            multiply-accumulate, post-increment, hardware loops and more:
            ``runtime_c/iss/corev.h``); on a core without them they are illegal instructions. A core
            with a scoreboard cannot have them.
        arm: what tools must know of a Cortex-M core; None for others.  Its cycles are not
            simulated: its programs run on an emulator, which counts instructions.
        vectors: the vector unit of a RISC-V core, whose programs run on an emulator, too.
        xtensa: what tools must know of an Xtensa core, likewise; None for others.
    """

    name: str
    isa: str
    stack: int
    cost: HostCost
    stack_memory: str = "L2"
    timing: CoreTiming | None = None
    corev: bool = False
    arm: ArmCore | None = None
    vectors: RiscvVectors | None = None
    xtensa: XtensaCore | None = None

    @property
    def is_in_user_mode(self) -> bool:
        """Whether its programs are processes of QEMU's user mode."""
        return self.vectors is not None or self.xtensa is not None

    @property
    def platform(self) -> Literal["rv32", "arm", "qemu"]:
        """The platform that runs its programs."""
        if self.is_in_user_mode:
            return "qemu"
        if self.arm is None:
            return "rv32"
        return "arm" if self.arm.emulator else "qemu"

    @property
    def simd(self) -> Literal["", "corev", "dsp", "dsp_dual", "mve", "thumb", "rvv"]:
        """Which intrinsics its kernels use; empty for none.

        "corev", "dsp", "mve" and "rvv" are SIMD instructions, "dsp_dual" those of "dsp" in another
        order, "thumb" loops of scalar ones on other Cortex-M cores.
        """
        if self.vectors is not None:
            return "rvv"
        if self.arm is not None and self.arm.dual and self.arm.extension == "dsp":
            return "dsp_dual"
        if self.arm is not None:
            return self.arm.extension or "thumb"
        return "corev" if self.corev else ""


CV32E40P = Host(
    name="RV32IMC host (CV32E40P timing)",
    isa="rv32imc",
    # assumed: generous for generated code, which is not recursive.
    stack=4_096,
    # derived: measured on the simulated host, our schedules (tests/soc/test_host_cost.py); add:
    # fitted to the published CPU column (compiled with XpulpV2), as ours are fused into convs.
    cost=HostCost(
        conv_mac=3.0,
        pointwise_mac=3.0,
        dense_mac=3.3,
        depthwise_mac=4.7,
        add_element=7.8,
        pool_element=3.0,
        softmax_element=60.0,
        move_element=6.0,
        # Derived on the simulated host: dequantize 130, quantize 440 (no floating-point unit).
        real_element=260.0,
        layout_byte=3.8,
    ),
)
"""A core with 32-bit integer instructions; its timing is that of the RTL of the CV32E40P."""

CV32E40P_SIMD = replace(
    CV32E40P,
    name="RV32IMC host with CORE-V SIMD (CV32E40P timing)",
    corev=True,
    # derived: measured as above, with dot products of four bytes (htvm/aot/intrinsics.py).  An
    # add is what one by shift adds to its convolution; pools, softmax, moves, reals and layouts
    # gain nothing.
    cost=replace(
        CV32E40P.cost,
        conv_mac=0.6,
        pointwise_mac=0.5,
        dense_mac=0.75,
        depthwise_mac=3.0,
        add_element=6.7,
    ),
)
"""The same core with its PULP extensions (SIMD, multiply-accumulate, post-increment and others)."""
