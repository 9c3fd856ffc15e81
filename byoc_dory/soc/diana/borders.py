"""C for the conversions between a source model's layout and the cores' at borders of a region."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from byoc_dory.definition import Definition, Slot
from byoc_dory.emit.layout import Average, Conversion, TensorLayout
from byoc_dory.emit.text import comment, rendered
from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import Array, MapRows, Tensor
from byoc_dory.region import Kernel
from byoc_dory.soc.base import round_up
from byoc_dory.soc.diana.cost import Core
from byoc_dory.soc.diana.packing import stored_bytes, stored_offsets

# Words of a row per iteration of a loop, and largest number that is written without a loop.
_UNROLL = 4
_STRAIGHT = 8
_UNROLL_APART = 24  # where cores compute beside the host, which then is what takes longest


@dataclass(frozen=True)
class PaddedLayout(TensorLayout):
    """The layout of both cores: channel by channel, rows padded, groups of bytes reversed.

    Attributes:
        core: one of the cores, which gives the padding of rows and the size of a group.
    """

    core: Core

    def native(self, tensor: Tensor) -> bool:
        """Return whether a border tensor already has this layout."""
        return tensor.layout == "CHW"

    def stored_bytes(self, tensor: Tensor) -> int:
        """Return the bytes of L2 that a tensor takes, including padding."""
        return stored_bytes(tensor.shape, self.core.row_pitch)

    def offsets(self, tensor: Tensor) -> Array:
        """Return the byte offset of each element from the tensor's first byte."""
        return stored_offsets(tensor.shape, self.core.row_pitch, self.core.group)

    def table_comment(self, tensor: Tensor, source: str) -> str:
        """Return the comment of a table that is applied to the bytes of ``source`` on the way."""
        return f"{tensor.name}: what each byte of {source} becomes"

    def convert(self, conversion: Conversion) -> Kernel:
        """Return the host's function that converts a tensor."""
        tensor, table = conversion.tensor, conversion.table
        template = "to_accelerator" if conversion.inward else "from_accelerator"
        walk = _walk(self.core, tensor)
        if conversion.rows is not None:
            return self._convert_rows(conversion, conversion.rows)
        text = rendered(
            "byoc_dory.soc.diana",
            f"{template}.c.jinja",
            signature=conversion.signature,
            tensor=tensor,
            core=self.core,
            stored=self.stored_bytes(tensor),
            source=conversion.source,
            table=table,
            apart=False,
            **walk,
        )
        return conversion.kernel(text, _walk_cycles(walk, conversion.inward, table is not None))

    def has_rows_apart(self, tensor: Tensor) -> bool:
        """Return whether rows can be converted by themselves: those of an NHWC tensor can."""
        return tensor.layout == "NHWC"

    def _convert_rows(self, conversion: Conversion, rows: MapRows) -> Kernel:
        """Return the host's function that converts rows of a tensor into this layout."""
        tensor = conversion.tensor
        channels, height, columns = tensor.shape
        pitch = round_up(columns, self.core.row_pitch)
        walk = {**_walk_row(self.core, columns, _UNROLL_APART), "channels": channels}
        body = rendered(
            "byoc_dory.soc.diana",
            "to_accelerator.c.jinja",
            apart=True,
            map_bytes=height * pitch,
            table=conversion.table,
            rows=height,
            step=channels,
            **walk,
        )
        definition = Definition(
            "to_core",
            (comment(rows.name),),
            (
                f"rows of {comment(tensor.name)}, {tensor.layout} to the accelerator's layout, "
                f"shape {tensor.shape}.",
                "Four columns make a word, the first in its highest byte; rows are padded with "
                "zeros.",
            ),
            "int32_t",
            ("const int8_t *in", "int8_t *out"),
            body,
            (
                Slot("first_in", "uint32_t", str(rows.first * columns * channels)),
                Slot("first_out", "uint32_t", str(rows.first * pitch)),
                Slot("rows", "uint32_t", str(rows.shape[1])),
            ),
        )
        cycles = _walk_cycles({**walk, "rows": rows.shape[1]}, True, conversion.table is not None)
        return conversion.kernel(definition.text(conversion.symbol), cycles, definition)

    def average(self, average: Average) -> Kernel | None:
        """Return the host's function that averages maps; None for wide maps, and large ones.

        Words are added up to four bytes at a time, which at most 256 of them do without overflow.
        """
        tensor, paired = average.tensor, average.least >= 0
        channels, *map_size = tensor.shape
        count = prod(map_size)
        rows = _rows_of(self.core, *map_size)
        words = rows.count * len(rows.words)
        if len(rows.words) > _MOST_WORDS or words > 256 * (2 if paired else 1):
            return None
        text = rendered(
            "byoc_dory.soc.diana",
            "average.c.jinja",
            signature=average.signature,
            name=average.name,
            tensor=tensor,
            channels=channels,
            rows=rows.count,
            row_words=rows.words,
            single=rows.single,
            pitch=rows.pitch,
            unroll=_UNROLLED,
            paired=paired,
            count=count,
            added=4 * words,
            clip=list(average.clip),
        )
        return average.kernel(text, channels * rows.cycles(paired))


_MOST_WORDS = 8  # of a row, which are written one after another
_UNROLLED = 4  # number of rows per iteration


@dataclass(frozen=True)
class _Rows:
    """Rows of a map in the cores' layout, as a sum walks them.

    Attributes:
        count: number of rows of a map.
        pitch: bytes from row to row.
        words: of each row: byte offset and mask of the words that are added; 0 for whole ones.
        single: byte offset of one more element; 0 for none.
    """

    count: int
    pitch: int
    words: tuple[tuple[int, int], ...]
    single: int

    def cycles(self, paired: bool) -> int:
        """Return the host's cycles for a map: instructions, and those at the ends of loops."""
        word = 3.5 if paired else 6
        masked = sum(mask > 0 for _, mask in self.words)
        row = word * len(self.words) + masked + (2 if self.single else 0)
        return round(self.count * row + 5 * (self.count // _UNROLLED) + 30)


def _rows_of(core: Core, height: int, width: int) -> _Rows:
    pitch = round_up(width, core.row_pitch)
    if width == pitch:
        # Maps without padding are as many rows of the smallest pitch.
        height, width, pitch = height * width // core.row_pitch, core.row_pitch, core.row_pitch
    whole, rest = divmod(width, core.group)
    words = [(core.group * number, 0) for number in range(whole)]
    last = core.group * whole
    if rest == 1:
        return _Rows(height, pitch, tuple(words), last + core.group - 1)
    if rest:
        words.append((last, 0xFFFFFFFF << 8 * (core.group - rest) & 0xFFFFFFFF))
    return _Rows(height, pitch, tuple(words), 0)


# Cycles of a loop's end per iteration, and number of rows that the compiler unrolls.
_LOOP, _UNROLLED_ROWS = 5, 8


def _walk_cycles(walk: dict[str, Any], inward: bool, looked_up: bool) -> int:
    """Return the host cycles of a conversion, counted from its loops' instructions (RV32IMC).

    A byte takes a load and a store, and with a table another addition and load.  Rows and groups of
    words have their own loops; the rest depends on how the compiler handles pointers, so this is
    accurate to 10 %, except for conversions of a few dozen bytes, where entry and exit count.
    """
    byte = 4 if looked_up else 2
    words = walk["groups"] * walk["unroll"] + walk["left"]
    row = byte * (4 * words + walk["rest"]) + 5 * walk["groups"]
    if inward:
        row += walk["void_words"] + (4 - walk["rest"]) % 4
    channels, rows = walk["channels"], walk["rows"]
    # A few rows inside the loop over channels become straight-line code; others keep their own
    # loop.
    loop = _LOOP if channels > 1 and 1 < rows <= _UNROLLED_ROWS else rows * _LOOP
    return int(channels * (rows * row + loop))


def _walk(core: Core, tensor: Tensor) -> dict[str, Any]:
    """Return how a conversion walks a source tensor.

    There are ``channels`` passes, each starting at its own first element, with ``step`` elements
    from one column to the next; a row has ``groups`` of words, ``left`` further words, and ``rest``
    further columns.  Rows are contiguous in the source, so rows that need no padding are joined.
    """
    if len(tensor.shape) == 1:
        channels, rows, columns, step = 1, 1, tensor.shape[0], 1
    elif tensor.layout == "NHWC":
        channels, rows, columns = tensor.shape
        step = channels
    elif tensor.layout == "NCHW":
        channels, rows, columns = 1, tensor.shape[0] * tensor.shape[1], tensor.shape[2]
        step = 1
    else:
        raise UnsupportedError(
            f"layout '{tensor.layout}' of shape {tensor.shape} cannot be converted",
            where=f"tensor '{tensor.name}'",
            hint="borders of regions are NHWC or NCHW, or C for vectors",
        )
    if columns == round_up(columns, core.row_pitch):
        rows, columns = 1, rows * columns
    walk = _walk_row(core, columns, _UNROLL)
    return {"channels": channels, "rows": rows, "step": step, **walk}


def _walk_row(core: Core, columns: int, unroll: int) -> dict[str, int]:
    """Return how a conversion walks a row, with ``unroll`` words per iteration (`_walk`)."""
    pitch = round_up(columns, core.row_pitch)
    words, rest = divmod(columns, core.group)
    groups = words // unroll if words > max(unroll, _STRAIGHT) else 0
    return {
        "unroll": unroll,
        "groups": groups,
        "left": words - unroll * groups,
        "rest": rest,
        "void_words": pitch // core.group - words - (1 if rest else 0),
    }
