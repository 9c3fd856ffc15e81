"""Helper: command streams of the Ethos-U written word by word, without Vela."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace
from typing import Any

from tests.runtime_c.ethos_u import ACCELERATORS

# Codes of registers, from Arm's public description of them.
SHORT = {
    "IFM_PAD_TOP": 0x100,
    "IFM_PAD_LEFT": 0x101,
    "IFM_PAD_RIGHT": 0x102,
    "IFM_PAD_BOTTOM": 0x103,
    "IFM_DEPTH_M1": 0x104,
    "IFM_PRECISION": 0x105,
    "IFM_UPSCALE": 0x107,
    "IFM_ZERO_POINT": 0x109,
    "IFM_WIDTH0_M1": 0x10A,
    "IFM_HEIGHT0_M1": 0x10B,
    "IFM_HEIGHT1_M1": 0x10C,
    "IFM_REGION": 0x10F,
    "OFM_WIDTH_M1": 0x111,
    "OFM_HEIGHT_M1": 0x112,
    "OFM_DEPTH_M1": 0x113,
    "OFM_PRECISION": 0x114,
    "OFM_BLK_WIDTH_M1": 0x115,
    "OFM_BLK_HEIGHT_M1": 0x116,
    "OFM_BLK_DEPTH_M1": 0x117,
    "OFM_ZERO_POINT": 0x118,
    "OFM_WIDTH0_M1": 0x11A,
    "OFM_HEIGHT0_M1": 0x11B,
    "OFM_HEIGHT1_M1": 0x11C,
    "OFM_REGION": 0x11F,
    "KERNEL_WIDTH_M1": 0x120,
    "KERNEL_HEIGHT_M1": 0x121,
    "KERNEL_STRIDE": 0x122,
    "PARALLEL_MODE": 0x123,
    "ACC_FORMAT": 0x124,
    "ACTIVATION": 0x125,
    "ACTIVATION_MIN": 0x126,
    "ACTIVATION_MAX": 0x127,
    "WEIGHT_REGION": 0x128,
    "SCALE_REGION": 0x129,
    "BLOCKDEP": 0x12F,
    "DMA0_SRC_REGION": 0x130,
    "DMA0_DST_REGION": 0x131,
    "IFM2_BROADCAST": 0x180,
    "IFM2_SCALAR": 0x181,
    "IFM2_PRECISION": 0x185,
    "IFM2_ZERO_POINT": 0x189,
    "IFM2_WIDTH0_M1": 0x18A,
    "IFM2_HEIGHT0_M1": 0x18B,
    "IFM2_HEIGHT1_M1": 0x18C,
    "IFM2_REGION": 0x18F,
}
LONG = {
    **{f"IFM_BASE{i}": i for i in range(4)},
    "IFM_STRIDE_X": 4,
    "IFM_STRIDE_Y": 5,
    "IFM_STRIDE_C": 6,
    **{f"OFM_BASE{i}": 0x10 + i for i in range(4)},
    "OFM_STRIDE_X": 0x14,
    "OFM_STRIDE_Y": 0x15,
    "OFM_STRIDE_C": 0x16,
    "WEIGHT_BASE": 0x20,
    "WEIGHT_LENGTH": 0x21,
    "SCALE_BASE": 0x22,
    "SCALE_LENGTH": 0x23,
    "OFM_SCALE": 0x24,
    "OPA_SCALE": 0x25,
    "OPB_SCALE": 0x26,
    "DMA0_SRC": 0x30,
    "DMA0_DST": 0x31,
    "DMA0_LEN": 0x32,
    **{f"IFM2_BASE{i}": 0x80 + i for i in range(4)},
    "IFM2_STRIDE_X": 0x84,
    "IFM2_STRIDE_Y": 0x85,
    "IFM2_STRIDE_C": 0x86,
}
OPERATIONS = {
    "STOP": 0,
    "CONV": 2,
    "DEPTHWISE": 3,
    "POOL": 5,
    "ELEMENTWISE": 6,
    "DMA_START": 0x10,
    "DMA_WAIT": 0x11,
    "KERNEL_WAIT": 0x12,
}
ELEMENTWISE = ("MUL", "ADD", "SUB", "MIN", "MAX", "LRELU", "ABS", "CLZ", "SHR", "SHL")
ROUNDING = {"TFL": 0, "TRUNCATE": 1, "NATURAL": 2}


def payload(words: list[int], accelerator: str = "ethos-u55-128") -> bytes:
    """Driver actions around a command stream."""
    product, macs = ACCELERATORS[accelerator]
    kilobytes = {32: 16, 64: 16, 128: 24, 256: 48}[macs]
    log2 = macs.bit_length() - 1
    config = log2 | kilobytes << 8 | (1 << 28 if product == 65 else 0)
    count = len(words)
    start = 2 | (count >> 16 & 0xFF) << 8 | (count & 0xFFFF) << 16
    head = [0x31504F43, 1, config, 0x10060000, 5, 5, 5, start]
    return struct.pack(f"<{len(head) + count}I", *head, *(word & 0xFFFFFFFF for word in words))


class Stream:
    """Words of a command stream, in the order of the calls."""

    def __init__(self) -> None:
        self.words: list[int] = []

    def set(self, **registers: Any) -> Stream:
        """Registers by name; a pair is a value of 32 bits and the parameter beside it."""
        for name, value in registers.items():
            if name in SHORT:
                self.words.append(SHORT[name] | (value & 0xFFFF) << 16)
            else:
                low, parameter = value if isinstance(value, tuple) else (value, value >> 32)
                self.words += [LONG[name] | 0x4000 | parameter << 16, low & 0xFFFFFFFF]
        return self

    def op(self, name: str, parameter: int = 0) -> Stream:
        self.words.append(OPERATIONS[name] | parameter << 16)
        return self

    def payload(self, accelerator: str = "ethos-u55-128") -> bytes:
        """The payload, with a STOP at the end."""
        return payload([*self.words, OPERATIONS["STOP"] | 0xFFFF << 16], accelerator)


@dataclass(frozen=True)
class Map:
    """A feature map with packed rows.

    Attributes:
        shape: rows, columns, channels.
        at: first byte, in region 1.
        bytes: of an element.
        signed: whether elements are.
        bricks: whether channels lie in bricks of 16 (NHCWB16).
        zero_point: of elements.
        tiles: width of the left tiles, height of the upper left and of the upper right one.
        bases: first bytes of the other tiles.
    """

    shape: tuple[int, int, int]
    at: int
    bytes: int = 1
    signed: bool = True
    bricks: bool = False
    zero_point: int = 0
    tiles: tuple[int, int, int] | None = None
    bases: tuple[int, int, int] = (0, 0, 0)
    region: int = 1
    extra: dict[str, Any] = field(default_factory=dict)

    def registers(self, name: str) -> dict[str, Any]:
        """Registers of the map as ``"IFM"``, ``"OFM"`` or ``"IFM2"``."""
        height, width, depth = self.shape
        log2 = self.bytes.bit_length() - 1
        size = log2 << (1 if name == "OFM" else 2)
        columns, left, right = self.tiles or (width, height, height)
        deep = -(-depth // 16) * 16
        strides = (
            (16 * self.bytes, width * deep * self.bytes, width * 16 * self.bytes)
            if self.bricks
            else (depth * self.bytes, width * depth * self.bytes, self.bytes)
        )
        bases = zip(("0", "1", "2", "3"), (self.at, *self.bases), strict=True)
        return {
            f"{name}_REGION": self.region,
            **{f"{name}_BASE{tile}": base for tile, base in bases},
            f"{name}_STRIDE_X": strides[0],
            f"{name}_STRIDE_Y": strides[1],
            f"{name}_STRIDE_C": strides[2],
            f"{name}_WIDTH0_M1": columns - 1,
            f"{name}_HEIGHT0_M1": left - 1,
            f"{name}_HEIGHT1_M1": right - 1,
            f"{name}_ZERO_POINT": self.zero_point,
            f"{name}_PRECISION": int(self.signed) | size | int(self.bricks) << 6,
        }

    def moved(self, **changes: Any) -> Map:
        return replace(self, **changes)


def kernel(
    ifm: Map,
    ofm: Map,
    *,
    scale: tuple[int, int] = (1, 0),
    rounding: str = "NATURAL",
    limits: tuple[int, int] = (-32768, 32767),
    activation: int = 0,
    blockdep: int = 0,
) -> dict[str, Any]:
    """Registers that every kernel needs: a window of 1x1, a global scale, blocks of 2x4x16."""
    out = ofm.registers("OFM")
    out["OFM_PRECISION"] |= 1 << 8 | ROUNDING[rounding] << 14
    return {
        **ifm.registers("IFM"),
        **out,
        "IFM_DEPTH_M1": ifm.shape[2] - 1,
        "IFM_UPSCALE": 0,
        "IFM_PAD_TOP": 0,
        "IFM_PAD_LEFT": 0,
        "IFM_PAD_RIGHT": 0,
        "IFM_PAD_BOTTOM": 0,
        "OFM_HEIGHT_M1": ofm.shape[0] - 1,
        "OFM_WIDTH_M1": ofm.shape[1] - 1,
        "OFM_DEPTH_M1": ofm.shape[2] - 1,
        "OFM_BLK_HEIGHT_M1": 1,
        "OFM_BLK_WIDTH_M1": 3,
        "OFM_BLK_DEPTH_M1": 15,
        "KERNEL_WIDTH_M1": 0,
        "KERNEL_HEIGHT_M1": 0,
        "KERNEL_STRIDE": 0,
        "ACTIVATION": activation,
        "ACTIVATION_MIN": limits[0],
        "ACTIVATION_MAX": limits[1],
        "OFM_SCALE": (scale[0], scale[1]),
        "BLOCKDEP": blockdep,
    }
