"""The Ethos-U's model complains about what a command stream must not do."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy as np
import pytest

from tests.runtime_c.ethos_u import (
    BAD_CALL,
    BAD_PAYLOAD,
    BAD_STREAM,
    DONE,
    TOO_LONG,
    EthosU,
    Result,
    aligned,
    library,
)
from tests.runtime_c.ethos_u_stream import Map, Stream, kernel, payload

IFM = Map((4, 8, 16), 0)
OFM = Map((4, 8, 16), 0x400)
SIZE = 0x1000
INPUT = (1, 0, 512)


@pytest.fixture(scope="module")
def lib() -> ctypes.CDLL:
    return library()


def run(
    lib: ctypes.CDLL, stream: Stream, accelerator: str = "ethos-u55-128", **options: Any
) -> Result:
    npu = EthosU(lib, {0: aligned(bytes(range(256)) * 16), 1: aligned(SIZE)}, frozenset({0}))
    written = options.pop("written", [(0, 0, 4096), INPUT])
    return npu.run(stream.payload(accelerator), written=written, **options)


def average(**changes: Any) -> Stream:
    """An average of 1x1 that is right, but for these registers."""
    return Stream().set(**(kernel(IFM, OFM) | changes)).op("POOL", 1)


def test_a_stream_that_is_right(lib: ctypes.CDLL) -> None:
    result = run(lib, average())
    assert result == Result(DONE, "", 1, 0)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"OFM_BASE0": 0xF00}, "the OFM of 4x8x16 leaves region 1 of 4096 B"),
        ({"IFM_BASE0": 0x1000}, "the IFM of 4x8x16 leaves region 1"),
        ({"IFM_REGION": 2}, "the IFM is in region 2, which has no base"),
        ({"OFM_REGION": 0}, "the OFM is in region 0, which is constant"),
        ({"IFM_STRIDE_X": 17, "IFM_PRECISION": 1 | 1 << 2}, "are not multiples of 2"),
        ({"IFM_BASE0": 2, "IFM_PRECISION": 1 | 1 << 6}, "IFM_BASE0 = 0x2 is not a multiple of 16"),
        ({"IFM_BASE0": 16}, "the IFM reads byte 0x200 of region 1, which nobody wrote"),
        ({"IFM_PRECISION": 3 << 2}, "IFM_PRECISION = 0xc: no such element size"),
        ({"IFM_PRECISION": 2 << 6}, "no such format"),
        ({"OFM_PRECISION": 1 | 1 << 8 | 3 << 14}, "no such rounding"),
        ({"ACTIVATION_MIN": 5, "ACTIVATION_MAX": 4}, "ACTIVATION_MIN = 5 and _MAX = 4 leave no"),
        ({"ACTIVATION": 16 | 5 << 12}, "a table has no entries for results of -32768 to 32767"),
        ({"ACTIVATION": 9}, "ACTIVATION = 0x9 has no meaning"),
        ({"ACTIVATION": 16}, "reads byte 0x0 of the tables, which nobody wrote"),
        ({"IFM_UPSCALE": 3}, "IFM_UPSCALE = 3, at most 2 has a meaning"),
        ({"BLOCKDEP": 4}, "BLOCKDEP = 4, at most 3"),
        ({"OFM_SCALE": (1, 64)}, "OFM_SCALE has the shift 64, at most 63"),
        ({"OFM_BASE0": (0x400, 1)}, "OFM_BASE0 has the upper bits 1, at most 0"),
        ({"IFM_PAD_TOP": 100}, "the padding (IFM_PAD_...) leaves no row"),
        ({"KERNEL_HEIGHT_M1": 256, "KERNEL_WIDTH_M1": 1}, "the kernel of 257x2 is too large"),
    ],
)
def test_registers(lib: ctypes.CDLL, changes: dict[str, Any], complaint: str) -> None:
    result = run(lib, average(**changes))
    assert result.status == BAD_STREAM
    assert complaint in result.complaint


@pytest.mark.parametrize("name", sorted(kernel(IFM, OFM)))
def test_registers_that_were_never_set(lib: ctypes.CDLL, name: str) -> None:
    registers = kernel(IFM, OFM)
    del registers[name]
    result = run(lib, Stream().set(**registers).op("POOL", 1))
    if name == "IFM_DEPTH_M1":  # an average has as many channels as its results
        assert result.status == DONE
    else:
        assert (result.status, f"{name} was never set" in result.complaint) == (BAD_STREAM, True)


@pytest.mark.parametrize(
    ("word", "complaint"),
    [
        (0x0000_0004, "no operation has the code 0x4"),
        (0x0000_0106, "no register has the code 0x106"),
        (0x0000_4007, "no register has the code 0x7"),
        (0x0000_8000, "0x8000 is no command"),
        (0x0003_0005, "POOL (word 61): no such operation: 3"),
        (0x000A_0006, "ELEMENTWISE (word 61): no such operation: 10"),
    ],
)
def test_unknown_commands(lib: ctypes.CDLL, word: int, complaint: str) -> None:
    stream = Stream().set(**kernel(IFM, OFM))
    stream.words += [word, 0]
    result = run(lib, stream)
    assert result.status == BAD_STREAM
    assert complaint in result.complaint


def copy(to: int, *, size: int = 256, region: int = 1, source: int = 0) -> Stream:
    return Stream().set(
        DMA0_SRC_REGION=0, DMA0_SRC=source, DMA0_DST_REGION=region, DMA0_DST=to, DMA0_LEN=size
    )


def joined(*parts: Stream) -> Stream:
    out = Stream()
    for part in parts:
        out.words += part.words
    return out


def test_transfers(lib: ctypes.CDLL) -> None:
    for stream, complaint in (
        (copy(0xFF0, size=32), "the DMA0_DST leaves region 1 of 4096 B"),
        (copy(8), "DMA0_DST = 0x8, DMA0_LEN = 256: no multiples of 16"),
        (copy(0x5700, region=0x103), "are not in the tables, 0x5800 to 0x6000"),
        (copy(0, region=0x200), "DMA0_DST_REGION = 0x200"),
        (copy(0, region=0), "DMA0_DST is in region 0, which is constant"),
    ):
        result = run(lib, stream.op("DMA_START"))
        assert (result.status, complaint in result.complaint) == (BAD_STREAM, True), result


@pytest.mark.parametrize("wait", [False, True])
def test_a_missing_dma_wait(lib: ctypes.CDLL, wait: bool) -> None:
    """The kernel reads what the DMA copies."""
    stream = copy(0).op("DMA_START")
    if wait:
        stream.op("DMA_WAIT")
    result = run(lib, joined(stream, average()))
    assert result.status == (DONE if wait else BAD_STREAM)
    assert wait or "its IFM at 0x0 may still be copied by the DMA at word 8" in result.complaint


@pytest.mark.parametrize("wait", [None, 1, 0])
@pytest.mark.parametrize(
    ("to", "free", "what"),
    [(0, False, "IFM"), (0x500, False, "OFM"), (0x800, True, "")],
)
def test_a_missing_kernel_wait(
    lib: ctypes.CDLL, wait: int | None, to: int, free: bool, what: str
) -> None:
    """The DMA overwrites what the kernel reads or writes."""
    stream = average()
    if wait is not None:
        stream.op("KERNEL_WAIT", wait)
    result = run(lib, joined(stream, copy(to).op("DMA_START")))
    right = free or wait == 0
    assert result.status == (DONE if right else BAD_STREAM), result
    assert right or f"the {what} of the kernel at word 61 may still be accessed" in result.complaint


@pytest.mark.parametrize("wait", [False, True])
@pytest.mark.parametrize("scales", [False, True])
def test_weights_that_a_kernel_writes(lib: ctypes.CDLL, scales: bool, wait: bool) -> None:
    """They may be fetched before a kernel that writes them is done, whatever BLOCKDEP says."""
    stream = average()
    if wait:
        stream.op("KERNEL_WAIT", 0)
    made, constant = (1, 0x400), (0, 0)
    (weight_region, weights), (scale_region, places) = (
        (constant, made) if scales else (made, constant)
    )
    registers = kernel(IFM, Map((4, 8, 4), 0x800)) | {
        "WEIGHT_REGION": weight_region, "WEIGHT_BASE": weights, "WEIGHT_LENGTH": 16,
        "SCALE_REGION": scale_region, "SCALE_BASE": places, "SCALE_LENGTH": 48, "ACC_FORMAT": 0,
    }  # fmt: skip
    result = run(lib, joined(stream, Stream().set(**registers).op("CONV")))
    said = "its weights or scales at 0x400 may still be written by the kernel at word 61"
    assert result.status == BAD_STREAM  # the bytes that are there are no weights
    assert (said in result.complaint) == (not wait), result


def test_the_tables_of_small_buffers_do_not_survive(lib: ctypes.CDLL) -> None:
    """Accumulators of kernels without tables lie there, unless the buffer is large."""
    table = copy(0x3800, region=0x103).op("DMA_START").op("DMA_WAIT")
    lookup = average(ACTIVATION=16)
    assert run(lib, joined(table, lookup), "ethos-u55-64").status == DONE
    result = run(lib, joined(table, average(), lookup), "ethos-u55-64")
    assert "which nobody wrote" in result.complaint


@pytest.mark.parametrize(("blockdep", "right"), [(0, True), (1, False), (3, False)])
def test_blocks_that_run_beside_each_other(lib: ctypes.CDLL, blockdep: int, right: bool) -> None:
    """The first block of the second kernel reads all that the first one writes."""
    third = Map((1, 1, 16), 0x800)
    whole = kernel(OFM, third, blockdep=blockdep) | {
        "KERNEL_HEIGHT_M1": 3,
        "KERNEL_WIDTH_M1": 7,
    }
    result = run(lib, joined(average(), Stream().set(**whole).op("POOL", 0)))
    assert result.status == (DONE if right else BAD_STREAM), result
    assert right or f"BLOCKDEP = {blockdep} lets it read the IFM" in result.complaint


def test_blocks_far_from_each_other(lib: ctypes.CDLL) -> None:
    """Of four blocks, the first of the next kernel reads the first, three before the last."""
    then = Map((4, 8, 16), 0x800)
    for blockdep, right in ((2, True), (3, True)):
        second = Stream().set(**kernel(OFM, then, blockdep=blockdep)).op("POOL", 1)
        result = run(lib, joined(average(), second))
        assert result.status == (DONE if right else BAD_STREAM), result


def test_payloads(lib: ctypes.CDLL) -> None:
    npu = EthosU(lib, {1: aligned(SIZE)})
    right = average().payload()
    words = list(struct.unpack(f"<{len(right) // 4}I", right))

    def packed(changes: dict[int, int], length: int | None = None) -> bytes:
        new = [changes.get(i, word) for i, word in enumerate(words)][:length]
        return struct.pack(f"<{len(new)}I", *new)

    for bad, complaint in (
        (b"", "does not begin with COP1"),
        (b"COP2", "does not begin with COP1"),
        (right[:-2], "does not begin with COP1"),
        (packed({}, 40), "of which the payload has 32"),
        (packed({4: 7}), "word 4, 0x7, is no driver action"),
        (packed({1: 5, 2: 5, 3: 5}), "no configuration before the command stream"),
        (packed({2: 0x1804}), "is no Ethos-U55 and no Ethos-U65"),
        (packed({}, 7), "the payload has no command stream"),
    ):
        result = npu.run(bad)
        assert (result.status, complaint in result.complaint) == (BAD_PAYLOAD, True), result
    other = npu.run(right, accelerator="ethos-u55-256")
    assert (other.status, "for an Ethos-U55-128, the NPU is" in other.complaint) == (
        BAD_PAYLOAD,
        True,
    )
    assert "ends without STOP" in npu.run(payload(average().words)).complaint


def test_calls(lib: ctypes.CDLL) -> None:
    stream = average().payload()
    small = EthosU(lib, {1: aligned(SIZE)}, workspace=1 << 16).run(stream)
    assert (small.status, "too small" in small.complaint) == (BAD_CALL, True)
    crooked = EthosU(lib, {1: aligned(SIZE + 16)[4 : 4 + SIZE]}).run(stream)
    assert (crooked.status, "base of region 1 is not a multiple" in crooked.complaint) == (
        BAD_CALL,
        True,
    )
    long = EthosU(lib, {1: aligned(SIZE)}).run(stream, work_limit=100)
    assert (long.status, "exceed the run's limit of 100" in long.complaint) == (TOO_LONG, True)


def test_unchecked_runs_stay_inside(lib: ctypes.CDLL) -> None:
    """What is not looked for is executed as far as it has a meaning; memory is never left."""
    npu = EthosU(lib, {1: aligned(SIZE)})
    assert npu.run(average(BLOCKDEP=4).payload(), checked=False).status == DONE
    assert npu.run(average(IFM_BASE0=0xFFF0).payload(), checked=False).status == BAD_STREAM


def test_every_byte_of_the_result(lib: ctypes.CDLL) -> None:
    npu = EthosU(lib, {1: aligned(SIZE)})
    data = np.random.default_rng(0).integers(0, 256, 512).astype(np.uint8)
    npu.regions[1][:512] = data
    assert npu.run(average().payload()).status == DONE
    assert (npu.regions[1][0x400:0x600] == data).all()
    assert not npu.regions[1][0x600:].any()


def test_behind_the_driver(lib: ctypes.CDLL) -> None:
    """One NPU; every region has a size; the first complaint is kept."""
    lib.ethosu_reserve_driver.restype = ctypes.c_void_p
    lib.htvm_ethos_u_complaint.restype = ctypes.c_char_p
    driver = ctypes.c_void_p(lib.ethosu_reserve_driver())
    assert driver.value is not None
    assert lib.ethosu_reserve_driver() is None
    memory, stream = aligned(SIZE), aligned(average().payload())
    base = (ctypes.c_uint64 * 2)(0, memory.ctypes.data)
    size = (ctypes.c_size_t * 2)(0, SIZE)
    words = ctypes.c_void_p(stream.ctypes.data)
    assert lib.ethosu_invoke_v3(driver, words, stream.size, base, size, 2, None) == 0
    assert lib.htvm_ethos_u_complaint() is None
    assert lib.ethosu_invoke_v3(driver, words, stream.size, base, None, 2, None) == -1
    assert lib.ethosu_invoke_v3(driver, words, 8, base, size, 2, None) == -1
    assert b"regions need bases and sizes" in lib.htvm_ethos_u_complaint()
    assert lib.ethosu_invoke_v3(None, words, stream.size, base, size, 2, None) == -1
    lib.ethosu_release_driver(driver)
    assert lib.ethosu_reserve_driver() == driver.value
    lib.ethosu_release_driver(driver)
