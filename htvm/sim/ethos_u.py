"""Command streams of Arm's Ethos-U55 and -U65, read: one line per command.

Names and codes are those of Arm's public register description (PyPI ethos-u-vela, Apache-2.0).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from htvm.errors import InputError

__all__ = ["Command", "commands", "disassemble"]

_MAGIC = b"COP1"
_CONFIGURATION, _STREAM, _NOP = 1, 2, 5
_LONG = 0x4000

_OPERATIONS = {
    0x00: "STOP",
    0x01: "IRQ",
    0x02: "CONV",
    0x03: "DEPTHWISE",
    0x05: "POOL",
    0x06: "ELEMENTWISE",
    0x10: "DMA_START",
    0x11: "DMA_WAIT",
    0x12: "KERNEL_WAIT",
    0x13: "PMU_MASK",
}
_KINDS = {
    "POOL": ("MAX", "AVERAGE", "REDUCE_SUM"),
    "ELEMENTWISE": ("MUL", "ADD", "SUB", "MIN", "MAX", "LRELU", "ABS", "CLZ", "SHR", "SHL"),
}
_MAP_SHORT = {
    0x05: "PRECISION",
    0x09: "ZERO_POINT",
    0x0A: "WIDTH0_M1",
    0x0B: "HEIGHT0_M1",
    0x0C: "HEIGHT1_M1",
    0x0F: "REGION",
}
_MAP_LONG = ("BASE0", "BASE1", "BASE2", "BASE3", "STRIDE_X", "STRIDE_Y", "STRIDE_C")
_SHORT = {
    **{0x100 + code: f"IFM_{name}" for code, name in _MAP_SHORT.items()},
    **{0x180 + code: f"IFM2_{name}" for code, name in _MAP_SHORT.items()},
    **{0x110 + code: f"OFM_{name}" for code, name in _MAP_SHORT.items() if code >= 0x0A},
    0x100: "IFM_PAD_TOP",
    0x101: "IFM_PAD_LEFT",
    0x102: "IFM_PAD_RIGHT",
    0x103: "IFM_PAD_BOTTOM",
    0x104: "IFM_DEPTH_M1",
    0x107: "IFM_UPSCALE",
    0x10D: "IFM_IB_END",
    0x111: "OFM_WIDTH_M1",
    0x112: "OFM_HEIGHT_M1",
    0x113: "OFM_DEPTH_M1",
    0x114: "OFM_PRECISION",
    0x115: "OFM_BLK_WIDTH_M1",
    0x116: "OFM_BLK_HEIGHT_M1",
    0x117: "OFM_BLK_DEPTH_M1",
    0x118: "OFM_ZERO_POINT",
    0x120: "KERNEL_WIDTH_M1",
    0x121: "KERNEL_HEIGHT_M1",
    0x122: "KERNEL_STRIDE",
    0x123: "PARALLEL_MODE",
    0x124: "ACC_FORMAT",
    0x125: "ACTIVATION",
    0x126: "ACTIVATION_MIN",
    0x127: "ACTIVATION_MAX",
    0x128: "WEIGHT_REGION",
    0x129: "SCALE_REGION",
    0x12D: "AB_START",
    0x12F: "BLOCKDEP",
    0x130: "DMA0_SRC_REGION",
    0x131: "DMA0_DST_REGION",
    0x132: "DMA0_SIZE0",
    0x133: "DMA0_SIZE1",
    0x180: "IFM2_BROADCAST",
    0x181: "IFM2_SCALAR",
    0x18D: "IFM2_IB_START",
}
_LONG_NAMES = {
    **{code: f"IFM_{name}" for code, name in enumerate(_MAP_LONG)},
    **{0x10 + code: f"OFM_{name}" for code, name in enumerate(_MAP_LONG)},
    **{0x80 + code: f"IFM2_{name}" for code, name in enumerate(_MAP_LONG)},
    0x20: "WEIGHT_BASE",
    0x21: "WEIGHT_LENGTH",
    0x22: "SCALE_BASE",
    0x23: "SCALE_LENGTH",
    0x24: "OFM_SCALE",
    0x25: "OPA_SCALE",
    0x26: "OPB_SCALE",
    0x30: "DMA0_SRC",
    0x31: "DMA0_DST",
    0x32: "DMA0_LEN",
    0x33: "DMA0_SKIP0",
    0x34: "DMA0_SKIP1",
    0x90: "WEIGHT1_BASE",
    0x91: "WEIGHT1_LENGTH",
    0x92: "SCALE1_BASE",
    0x93: "SCALE1_LENGTH",
}
_SCALES = {"OFM_SCALE", "OPA_SCALE", "OPB_SCALE"}
_SIGNED = {"ACTIVATION_MIN", "ACTIVATION_MAX", "IFM2_SCALAR"}
_ROUNDINGS = ("TFL", "TRUNCATE", "NATURAL", "?")


@dataclass(frozen=True)
class Command:
    """One command of a stream.

    Attributes:
        word: index of its first word in the stream.
        name: of the operation, such as ``"POOL AVERAGE"``, or of the register; ``"?"`` and the code
            if there is none.
        value: the register's value (of scales: the multiplier), or the operation's parameter.
        shift: of scales, else ``None``.
        registers: of an operation, what the registers hold when it starts, by name; scales as a
            pair of multiplier and shift.
    """

    word: int
    name: str
    value: int
    shift: int | None = None
    registers: Mapping[str, int | tuple[int, int]] | None = None

    def __str__(self) -> str:
        """One line: index, name and decoded fields."""
        if self.registers is not None:
            return f"{self.word:6} {self.name}{_summary(self.name, self.value, self.registers)}"
        if self.shift is not None:
            return f"{self.word:6}   {self.name} = {self.value} >> {self.shift}"
        detail = _field(self.name, self.value)
        return f"{self.word:6}   {self.name} = {detail}"


def commands(payload: bytes) -> Iterator[Command]:
    """Yield the commands of a driver payload's streams, in order.

    Args:
        payload: driver actions from ``COP1`` on, as Vela writes them.

    Raises:
        InputError: these are no driver actions, or they end early.
    """
    for words in _streams(payload):
        held: dict[str, int | tuple[int, int]] = {}
        at = 0
        while at < len(words):
            word = at
            code, parameter = words[at] & 0x3FF, words[at] >> 16
            at += 1
            if words[word] & _LONG:
                if at == len(words):
                    raise InputError(
                        "a command stream ends within a command",
                        where=f"word {word}",
                        hint="export the network again",
                    )
                yield _long(word, code, parameter, words[at], held)
                at += 1
            elif code >= 0x100:
                name = _SHORT.get(code, f"? 0x{code:03x}")
                held[name] = _signed(name, parameter)
                yield Command(word, name, _signed(name, parameter))
            else:
                yield Command(word, _operation(code, parameter), parameter, None, dict(held))


def disassemble(payload: bytes, *, registers: bool = True) -> Iterator[str]:
    """Yield a payload's commands, one line each.

    Args:
        payload: driver actions from ``COP1`` on, as Vela writes them.
        registers: whether writes of registers have lines; otherwise operations alone.

    Raises:
        InputError: these are no driver actions, or they end early.
    """
    for command in commands(payload):
        if registers or command.registers is not None:
            yield str(command)


def _streams(payload: bytes) -> Iterator[tuple[int, ...]]:
    """Yield the words of each command stream."""
    if payload[:4] != _MAGIC or len(payload) % 4:
        raise InputError(
            "not a payload of driver actions",
            where=f"{len(payload)} B",
            hint="give the bytes from COP1 on",
        )
    words = struct.unpack(f"<{len(payload) // 4}I", payload)
    at = 1
    while at < len(words):
        action = words[at] & 0xFF
        if action == _CONFIGURATION:
            at += 3
        elif action == _STREAM:
            count = words[at] >> 16 | (words[at] & 0xFF00) << 8
            if at + 1 + count > len(words):
                raise InputError(
                    f"a command stream of {count} words is cut short",
                    where=f"word {at} of the payload",
                    hint="export the network again",
                )
            yield words[at + 1 : at + 1 + count]
            at += 1 + count
        elif action == _NOP:
            at += 1
        else:
            raise InputError(
                f"0x{words[at]:08x} is no driver action",
                where=f"word {at} of the payload",
                hint="export the network again",
            )


def _long(
    word: int, code: int, parameter: int, value: int, held: dict[str, int | tuple[int, int]]
) -> Command:
    """A command of two words; `held` keeps its value."""
    name = _LONG_NAMES.get(code, f"? 0x{code:03x}")
    if name in _SCALES:
        held[name] = (value, parameter)
        return Command(word, name, value, parameter)
    held[name] = value | parameter << 32
    return Command(word, name, value | parameter << 32)


def _operation(code: int, parameter: int) -> str:
    name = _OPERATIONS.get(code, f"? 0x{code:03x}")
    kinds = _KINDS.get(name, ())
    return f"{name} {kinds[parameter]}" if parameter < len(kinds) else name


def _signed(name: str, value: int) -> int:
    """A register's 16 bits as a number."""
    if name in _SIGNED or name.endswith("ZERO_POINT"):
        return value - 0x10000 if value & 0x8000 else value
    return value


def _field(name: str, value: int) -> str:
    """A register's value as it is read best."""
    if "BASE" in name or name in ("DMA0_SRC", "DMA0_DST"):
        return f"0x{value:x}"
    if name.endswith("PRECISION"):
        return f"0x{value:x} ({_precision(name, value)})"
    return str(value)


def _precision(name: str, value: int) -> str:
    """Type and layout of a feature map's elements, rounding, and which scale."""
    ofm = name.startswith("OFM")
    bits = 8 << (value >> (1 if ofm else 2) & 3)
    text = f"{'int' if value & 1 else 'uint'}{bits} {'NHCWB16' if value >> 6 & 3 else 'NHWC'}"
    if ofm:
        text += f" {_ROUNDINGS[value >> 14 & 3]} {'global' if value >> 8 & 1 else 'channel'} scale"
    return text


def _summary(name: str, parameter: int, registers: Mapping[str, int | tuple[int, int]]) -> str:
    """What an operation works on, from the registers' values."""

    def number(register: str) -> int:
        value = registers.get(register, 0)
        return value if isinstance(value, int) else value[0]

    def size(register: str) -> int:
        return number(register) + 1

    def tensor(kind: str, shape: str) -> str:
        base = ",".join(f"0x{number(f'{kind}_BASE{i}'):x}" for i in range(4)).replace(",0x0", "")
        precision = _precision(kind, number(f"{kind}_PRECISION"))
        zero = number(f"{kind}_ZERO_POINT")
        return f" {kind} [{number(f'{kind}_REGION')}]{base} {shape}{precision} zero {zero}"

    if name.startswith(("DMA_WAIT", "KERNEL_WAIT", "STOP", "IRQ", "PMU", "?")):
        return f" {parameter}"
    if name == "DMA_START":
        return (
            f" [{number('DMA0_SRC_REGION')}]0x{number('DMA0_SRC'):x} ->"
            f" [{number('DMA0_DST_REGION')}]0x{number('DMA0_DST'):x} {number('DMA0_LEN')} B"
        )
    shape = "x".join(str(size(f"OFM_{axis}_M1")) for axis in ("HEIGHT", "WIDTH", "DEPTH"))
    text = ""
    if not name.startswith("ELEMENTWISE"):
        stride = number("KERNEL_STRIDE")
        dilation = (stride >> 4 & 1) + 1, (stride >> 3 & 1) + 1
        steps = (stride >> 1 & 1 | stride >> 8 & 14) + 1, (stride & 1 | stride >> 5 & 14) + 1
        rows = number("KERNEL_HEIGHT_M1") // dilation[0] + 1
        columns = number("KERNEL_WIDTH_M1") // dilation[1] + 1
        pads = ",".join(str(number(f"IFM_PAD_{s}")) for s in ("TOP", "LEFT", "BOTTOM", "RIGHT"))
        text += f" kernel {rows}x{columns} stride {steps[0]}x{steps[1]} pad {pads}"
        text += f" dilation {dilation[0]}x{dilation[1]}" if max(dilation) > 1 else ""
        text += " part-kernel first" if stride & 4 else ""
    text += f" upscale {number('IFM_UPSCALE')}" if number("IFM_UPSCALE") else ""
    text += tensor("IFM", f"depth {size('IFM_DEPTH_M1')} ")
    if name.startswith("ELEMENTWISE") and not name.endswith(("LRELU", "ABS", "CLZ")):
        if number("IFM2_BROADCAST") & 0x80:
            text += f" scalar {number('IFM2_SCALAR')} zero {number('IFM2_ZERO_POINT')}"
        else:
            text += tensor("IFM2", "")
        text += f" broadcast 0x{number('IFM2_BROADCAST'):x}" if number("IFM2_BROADCAST") else ""
    text += f" ->{tensor('OFM', f'{shape} ')}"
    if name in ("CONV", "DEPTHWISE"):
        text += (
            f" weights [{number('WEIGHT_REGION')}]0x{number('WEIGHT_BASE'):x}"
            f" {number('WEIGHT_LENGTH')} B scales [{number('SCALE_REGION')}]"
            f"0x{number('SCALE_BASE'):x}"
        )
    scale = registers.get("OFM_SCALE")
    if number("OFM_PRECISION") >> 8 & 1 and isinstance(scale, tuple):
        text += f" scale {scale[0]} >> {scale[1]}"
    text += f" clamp {number('ACTIVATION_MIN')}..{number('ACTIVATION_MAX')}"
    text += f" activation 0x{number('ACTIVATION'):x}" if number("ACTIVATION") else ""
    block = "x".join(str(size(f"OFM_BLK_{axis}_M1")) for axis in ("HEIGHT", "WIDTH", "DEPTH"))
    return f"{text} block {block} blockdep {number('BLOCKDEP')}"
