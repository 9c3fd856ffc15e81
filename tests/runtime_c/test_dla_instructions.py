"""Every instruction of the accelerator, on random tensors with gaps between pixels and rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from byoc_dory.soc.dla.design import Design
from byoc_dory.soc.dla.isa import AVERAGE, BIAS, BY_NAME, INSTRUCTIONS, REQUANT, Command, encode
from byoc_dory.soc.dla.simulator import Simulator
from tests.byoc_dory.dla_draws import library
from tests.reference import dla_instructions as reference

Array = np.ndarray[Any, Any]

SRAM = 1 << 16
IN0, IN1, WEIGHTS, BIASES, OUT = 0x1000, 0x4000, 0x8000, 0xA000, 0xC000
INT32 = ("OP_E32_ADD", "OP_E32_SHR", "OP_E32_SHL")
PRODUCTS = ("OP_CONV", "OP_CONV_RELU", "OP_DEPTH_CONV", "OP_MAT_MUL")


class Case:
    """One instruction with random sizes, operands and strides."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self.rng = rng = np.random.default_rng([seed, sum(map(ord, name))])
        flags = [flag for flag in BY_NAME[name].flags if rng.integers(2)]
        self.flags = sum(flag.mask for flag in flags)
        low, high = sorted(int(v) for v in rng.integers(-128, 128, 2))
        self.p: dict[str, Any] = {
            "kernel": tuple(int(v) for v in rng.integers(1, 4, 2)),
            "stride": tuple(int(v) for v in rng.integers(1, 3, 2)),
            "pad": tuple(int(v) for v in rng.integers(0, 3, 2)),
            "shift": int(rng.choice([0, 1, 7, 12, 31])),
            "clip": (low, high),
            "alpha": int(rng.integers(8)),
            "requant": bool(self.flags & REQUANT.mask),
            "out": tuple(int(v) for v in rng.integers(1, 6, 2)),
        }
        self.c, self.k = (int(v) for v in rng.integers(1, 9, 2))
        windowed = name == "OP_POOL" or (name in PRODUCTS and name != "OP_MAT_MUL")
        size = tuple(int(v) for v in rng.integers(1, 8, 2)) if windowed else self.p["out"]
        if name not in ("OP_CONV", "OP_CONV_RELU", "OP_MAT_MUL"):
            self.c = self.k
        self.wide = name in INT32
        ends, dtype = ((-(2**31), 2**31), np.int32) if self.wide else ((-128, 128), np.int8)
        self.operands = [rng.integers(*ends, (*size, self.c)).astype(dtype) for _ in range(2)]
        fy, fx = (1, 1) if name == "OP_MAT_MUL" else self.p["kernel"]
        shape = (self.k, fy, fx) if name == "OP_DEPTH_CONV" else (self.k, fy, fx, self.c)
        self.weights = rng.integers(-128, 128, shape).astype(np.int8)
        self.bias = rng.integers(-(2**31), 2**31, self.k).astype(np.int32)

    @property
    def wanted(self) -> Array:
        """Results by the independent definition."""
        bias = self.bias if self.flags & BIAS.mask else np.zeros(self.k, np.int32)
        p, x = dict(self.p), self.operands[0]
        if self.name == "OP_POOL":
            return reference.pool(x, p, bool(self.flags & AVERAGE.mask))
        if self.name in PRODUCTS:
            if self.name == "OP_MAT_MUL":
                p |= {"kernel": (1, 1), "stride": (1, 1), "pad": (0, 0)}
            if self.name == "OP_CONV_RELU":
                p |= {"requant": True, "clip": tuple(max(v, 0) for v in p["clip"])}
            made = reference.convolve
            if self.name == "OP_DEPTH_CONV":
                made = reference.convolve_depthwise
            sums = made(x, self.weights, bias, p)
            return np.vectorize(lambda s: reference.clipped(s, p))(sums) if p["requant"] else sums
        of = reference.ELEMENTS[self.name]
        return np.vectorize(lambda a, b: of(int(a), int(b), p))(*self.operands)

    @property
    def result_size(self) -> int:
        """Bytes of an element of the result."""
        if self.name in ("OP_CONV", "OP_DEPTH_CONV", "OP_E32_SHR"):
            return 1 if self.p["requant"] else 4
        return 4 if self.name in ("OP_MAT_MUL", "OP_E32_ADD", "OP_E32_SHL") else 1

    def strides(self, size: int, channels: int, width: int) -> tuple[int, int]:
        """Bytes from pixel to pixel and from row to row, with gaps."""
        pixel = size * (channels + int(self.rng.integers(3)))
        return pixel, width * pixel + size * int(self.rng.integers(3))

    def run(self) -> Array:
        """Execute it and return the result."""
        high, wide = self.p["out"]
        size = self.result_size
        pixel, row = self.strides(size, self.k, wide)
        stream: list[Command] = []
        slots: dict[int, Array] = {}
        values = {
            "WEIGHTS": WEIGHTS, "BIAS": BIASES, "OUT": OUT, "CHANNELS": self.c,
            "IN_HEIGHT": self.operands[0].shape[0], "IN_WIDTH": self.operands[0].shape[1],
            "OUT_CHANNELS": self.k, "OUT_HEIGHT": high, "OUT_WIDTH": wide,
            "OUT_PIXEL": pixel, "OUT_ROW": row, "SHIFT": self.p["shift"], "ALPHA": self.p["alpha"],
        }  # fmt: skip
        for name, (a, b) in (
            ("KERNEL", self.p["kernel"]), ("STRIDE", self.p["stride"]),
            ("PAD", self.p["pad"]), ("CLIP", self.p["clip"]),
        ):  # fmt: skip
            values[name] = (a & 0xFFFF) << 16 | (b & 0xFFFF)
        for number, (place, array) in enumerate(zip((IN0, IN1), self.operands, strict=True)):
            each = array.dtype.itemsize
            apart = self.strides(each, self.c, array.shape[1])
            image = np.full((array.shape[0], apart[1]), 0x5A, np.uint8)
            for x in range(array.shape[1]):
                end = x * apart[0] + each * self.c
                column = np.asarray(array[:, x], order="C").view(np.uint8)
                image[:, x * apart[0] : end] = column.reshape(len(array), -1)
            slots[number] = image
            stream += load(number, place, image.size)
            values[f"IN{number}"] = place
            prefix = "IN" if number == 0 else "IN1"
            values[f"{prefix}_PIXEL"], values[f"{prefix}_ROW"] = apart
        slots[2], slots[3] = self.weights, self.bias
        stream += load(2, WEIGHTS, self.weights.nbytes) + load(3, BIASES, self.bias.nbytes)
        stream += writes(values)
        stream.append(Command(0, self.name, flags=self.flags))
        simulator = Simulator(library(), Design(pes_in=2, pes_out=4, sram=SRAM))
        simulator.execute(encode(stream), slots)
        found = np.zeros((high, wide, self.k * size), np.uint8)
        for y in range(high):
            for x in range(wide):
                place = OUT + y * row + x * pixel
                store = load(0, place, self.k * size, "OP_DMA_WRITE")
                simulator.execute(encode(store), {0: found[y, x]})
        return found.view(np.int32 if size == 4 else np.int8)


def writes(values: dict[str, int]) -> list[Command]:
    return [Command(0, "SET", register=name, value=value) for name, value in values.items()]


def load(slot: int, place: int, size: int, name: str = "OP_DMA_READ") -> list[Command]:
    values = {"SLOT": slot, "OFFSET": 0, "LOCAL": place, "ROWS": 1, "BYTES": size}
    return [*writes(values), Command(0, name)]


COMPUTING = [each.name for each in INSTRUCTIONS if each.kind != "DMA"]


def check(name: str, seed: int) -> None:
    case = Case(name, seed)
    np.testing.assert_array_equal(case.run(), case.wanted, err_msg=f"{name}, seed {seed}")


@pytest.mark.parametrize("name", COMPUTING)
def test_instructions(name: str) -> None:
    for seed in range(12):
        check(name, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPUTING)
def test_instructions_on_many_cases(name: str) -> None:
    for seed in range(12, 500):
        check(name, seed)


def test_sums_wrap_in_long_products() -> None:
    """200,000 products of -128 by -128 leave 31 bits; blocks of the simulator are shorter."""
    n = 200_000
    x = np.full(n, -128, np.int8)
    out = np.zeros(1, np.int32)
    stream = load(0, 0, n) + load(1, 1 << 18, n)
    stream += writes(
        {
            "IN0": 0, "WEIGHTS": 1 << 18, "OUT": 1 << 19, "CHANNELS": n, "OUT_CHANNELS": 1,
            "OUT_HEIGHT": 1, "OUT_WIDTH": 1, "IN_PIXEL": n, "IN_ROW": n, "OUT_PIXEL": 4,
            "OUT_ROW": 4,
        }
    )  # fmt: skip
    stream += [Command(0, "OP_MAT_MUL"), *load(2, 1 << 19, 4, "OP_DMA_WRITE")]
    simulator = Simulator(library(), Design(pes_in=1, pes_out=1, sram=1 << 20))
    simulator.execute(encode(stream), {0: x, 1: x, 2: out})
    assert out[0] == reference.wrapped(n * 128 * 128)
