"""The table of CPU kernels: what each core adds products to sums with, and in which blocks.

A row (`Products`, `Depthwise`) names a function of ``runtime_c/simd``, or of another header of a
core, which is few instructions on a core that has them and plain C elsewhere, and says what it
computes.  Schedules (`htvm.aot.schedules`) form the loops of a row and mark them with its name;
after lowering to flat buffers they become calls (`htvm.aot.calls`).  Dividing kernels among cores
(`htvm.aot.parallel`) comes after that, by what each function reads and writes
(`htvm.aot.effects`).  A new core is an entry of `KERNELS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from byoc_dory.errors import DefectError

Adds: TypeAlias = Callable[[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]], npt.NDArray[Any]]
"""From sums int32 [n] and operands int8 [n, width] to sums int32 [n]."""

Blocks: TypeAlias = Mapping[tuple[int, int], tuple[float, int]]
"""(pixels, channels) of a block whose sums stay in registers -> cycles per multiply-accumulate, 0
where they are not compared, and steps of the sum to unroll."""


PREFIX = "htvm_"
"""How functions that generated C calls begin; it calls no others."""

PIXELS = {1: "one", 2: "two", 3: "three"}
"""How functions end that multiply a column of so many pixels with all channels."""

ROW = "row"
"""How those end that multiply more pixels, with one channel after the other."""

IMAGE = "image"
"""How those end that multiply more pixels of an image, with some channels at a time."""


PAIRED = "_paired"
"""How those end that multiply pairs of pixels with words that have weights of two channels."""


def image_words(pixels: int) -> int:
    """Return the words that `Column.image` widens the windows of so many pixels to."""
    return 13 * (pixels + 1)


BLOCK_ENDINGS = {(2, 2): "two_by_two", (1, 4): "one_by_four", (1, 2): "one_by_two"}
"""How functions end that multiply a column with a block of pixels and channels."""


@dataclass(frozen=True)
class Scaled:
    """A call that multiplies a column with all channels and requantizes the sums as TFLite does
    (`htvm.aot.rescale`); the function's name ends in ``scaled_`` and the number of pixels.

    Attributes:
        pixels: of the column.
        channels: whose words alternate.
        last: how many do behind those if some are left; 0: none may be left.
        alike: whether there is another function, with the ending ``_alike``, for channels that have
            one factor.
        paired: whether its words have weights of two channels
            (`htvm.aot.schedules.packing.suit_pairs`); its name ends in ``_paired``.
        least: products of a sum from which on it takes no more cycles than calls for each block.
        cycles: for each element of a column, each product, and each sum.
    """

    pixels: int
    channels: int
    last: int = 0
    alike: bool = False
    paired: bool = False
    least: int = 0
    cycles: tuple[float, float, float] = (0, 0, 0)


_CALL_CYCLES = 140
"""Of a call of `Scaled`, apart from those for each element, product and sum."""


@dataclass(frozen=True)
class Column:
    """How a row's operands are copied before they are multiplied: as a column for each block.

    Attributes:
        dtype: type of a column's elements.
        words: of them for each word of the row.
        fill: functions that fill one column, two side by side, and so on; empty without blocks of
            so many pixels.
        lifted: whether 128 is added to weights, which are then unsigned; a column ends with an
            element for each pixel that takes the difference, to which filling it adds.
        whole: whether a column is multiplied with all channels by one call, which does not begin
            with a bias, and a word may span two rows of a filter; else blocks of channels are one
            call each.
        long: words from which on the call of the largest block is to the function with the ending
            ``_long``, which takes flash once; ``None``: never.
        scaled: calls that multiply it with all channels and requantize the sums.
        row: elements of pixels that are multiplied in rows by a call like `scaled`, one channel
            after the other, with the ending `ROW`; 0: none are.
        image: function that widens the windows of more pixels whose filters have three rows of nine
            elements, six apart, for a call with the ending `IMAGE`, which multiplies two of them
            with four channels as that of `Scaled.paired` does; empty: there is none.
        window: function that copies a filter's rows side by side where each of them is no words,
            so that their last ones share words; empty: there is none.
        dual: whether the call of `Scaled.paired` has its loads beside products, for a core that
            issues both at once: its name then ends in ``_dual_paired``.
        pairs: bytes of columns with several pairs of pixels, for `Scaled.paired`: those that are
            always there, and how many it takes where there is room.
    """

    dtype: str
    words: int
    fill: tuple[str, ...]
    lifted: bool = False
    whole: bool = False
    long: int | None = None
    scaled: tuple[Scaled, ...] = ()
    row: int = 0
    image: str = ""
    window: str = ""
    dual: bool = False
    pairs: tuple[int, int] = (512, 4096)

    def together(
        self, pixels: int, channels: int, taps: int, *, alike: bool, suited: bool
    ) -> Scaled | None:
        """Return the call that takes the fewest cycles for a row; ``None`` if none is for it.

        Args:
            pixels, channels: of the output.
            taps: products of a sum.
            alike: whether these channels have one factor.
            suited: whether words may have weights of two channels.
        """

        def cycles(way: Scaled) -> float:
            element, product, end = way.cycles
            sums = way.pixels * channels * (product * taps + end)
            return -(-pixels // way.pixels) * (_CALL_CYCLES + way.pixels * element * taps + sums)

        fitting = [
            way
            for way in self.scaled
            if way.pixels <= pixels
            and way.least <= taps
            and (way.pixels > 1 or pixels == 1)
            and (way.last or channels % way.channels == 0)
            and (way.alike or not alike)
            and (suited or not way.paired)
        ]
        return min(fitting, key=cycles, default=None)

    def pairs_together(self, number: int, taps: int, spare: int | None) -> int:
        """Return how many pairs of pixels one call multiplies: a divisor, of few bytes.

        Args:
            number: pixels.
            taps: products of a sum.
            spare: bytes that columns may take; ``None``: only those that are always there.
        """
        few, many = self.pairs
        most = max(few, min(spare or 0, many)) // (4 * taps)
        return max((n for n in range(1, most + 1) if number % (2 * n) == 0), default=1)


@dataclass(frozen=True)
class Products:
    """A way to compute convolutions and products of matrices, in blocks of pixels times channels.

    The pattern: for each of a block's sums, products of ``width`` neighbours of data and weights
    are added.

    Attributes:
        name: the function that adds them; for columns, how the names of those functions begin;
            empty: C's own operators.
        blocks: the blocks to choose from.
        note: describes a block, given its pixels, what these are, and its channels.
        width: elements of a word.  Words are of int8 with constant weights, which are packed.
        load: function that loads a word of data or weights, whose name also has the ending
            ``_any`` for data that may begin anywhere; empty with columns.
        column: how operands are copied first; ``None``: they stay in place.
        adds: what the function computes.
        least: the smallest weight for which it does.
        native: function that computes a whole NCHW convolution in programs of this machine, with
            its vectors (`htvm.aot.native`).
        whole: whether one call multiplies the operands of a block's pixels, in place, with all
            channels, and begins with the bias.
        sums: most sums of such a call, if there is a smaller block; 0: any number.

    Raises:
        DefectError: the function does not compute the pattern, is not called ``htvm_...``, or has
            no form for a block.
    """

    name: str
    blocks: Blocks
    note: str
    width: int = 1
    load: str = ""
    column: Column | None = None
    adds: Adds | None = field(default=None, compare=False)
    least: int = -128
    native: str = ""
    whole: bool = False
    sums: int = 0

    def __post_init__(self) -> None:
        check_pattern(self)
        column = self.column
        fill = (*column.fill, column.image, column.window) if column else ()
        _check_names(self.name, self.load, *fill)
        if self.width > 1 and not self.load and self.column is None:
            raise DefectError(
                "nothing says how words of data and weights are loaded",
                where=f"row '{self.name}' of kernels",
                hint="give `load`, or a `column` that operands are copied to first",
            )
        odd = set(self.blocks) - set(BLOCK_ENDINGS)
        if odd and self.column is not None and not self.column.whole:
            raise DefectError(
                f"a column is not multiplied with blocks of {sorted(odd)[0]} pixels and channels",
                where=f"row '{self.name}' of kernels",
                hint=f"blocks may be {', '.join(map(str, BLOCK_ENDINGS))}",
            )

    def block(self, pixels: int, channels: int) -> tuple[int, int, int] | None:
        """Return pixels and channels of the block with the fewest cycles, and steps to unroll.

        Args:
            pixels, channels: of the output; columns need blocks that divide the channels.

        Returns:
            ``None`` if no block fits.
        """

        def cost(shape: tuple[int, int]) -> tuple[float, int]:
            px, kt = shape
            computed = -(-pixels // px) * px * -(-channels // kt) * kt
            return self.blocks[shape][0] * computed, -px * kt

        fitting = [
            (px, kt)
            for px, kt in self.blocks
            if px <= pixels and kt <= channels and not (self.column and channels % kt)
        ]
        few = [(px, kt) for px, kt in fitting if px * channels <= self.sums]
        if self.sums and fitting:
            fitting = few or [min(fitting)]
        if not fitting:
            return None
        px, kt = min(fitting, key=cost)
        return px, kt, self.blocks[px, kt][1]


@dataclass(frozen=True)
class Depthwise:
    """A way to compute depthwise convolutions.

    The pattern: products of ``width`` taps of a channel are added to its sum.

    Attributes:
        name: the function that computes all channels of a pixel; empty: C's own operators, for
            several pixels of a channel.
        pixels: for which a core has registers, without a function.
        width: taps whose products are added before they are added to the sum.
        group: channels whose weights are side by side, 8 where they are no multiple of it; 0: all,
            and the function computes a row of pixels.
        scaled: pixels of blocks whose sums one call requantizes as TFLite does
            (`htvm.aot.rescale`), for filters of 3x3 at strides 1 and 2; the function's name ends in
            the block's pixels and the stride.
        distance: of an element from an address, at most, as a constant of a load of such blocks, or
            of `lines`.
        two_rows: elements in two rows of such blocks' input, at most, as a constant of a move.
        band: channels that it reads as a whole before it writes them, where one call computes a
            band of rows with all channels, requantized as above; multiples of them only.  The
            function's name ends in the stride.
        strides: of such a function.
        lines: by the rows of a map, if they are so few, what their pixels must be multiples of for
            a function that computes all of them; empty: it is for any number.  The name of one with
            a ``band`` ends in their number instead; without one, all distances are constants.
        window: rows and columns of the only filter that the function computes, with all that
            follows: whole rows of the output at strides 1 and 2, if they are requantized to int8
            as `htvm.aot.rescale` reads it and nothing else limits them.
        narrowest: stride -> pixels of a row from which on such rows (two at stride 1, one at stride
            2) take fewer instructions than single pixels.
        adds, least, native: as for `Products`.

    Raises:
        DefectError: the function does not compute the pattern, or is not called ``htvm_...``.
    """

    name: str = ""
    pixels: int = 1
    width: int = 1
    group: int = 16
    scaled: tuple[int, ...] = ()
    distance: int = 0
    two_rows: int = 0
    band: int = 0
    strides: tuple[int, ...] = ()
    lines: Mapping[int, int] = field(default_factory=dict[int, int], hash=False)
    window: tuple[int, int] | None = None
    narrowest: Mapping[int, int] = field(default_factory=dict[int, int], hash=False)
    adds: Adds | None = field(default=None, compare=False)
    least: int = -128
    native: str = ""

    def __post_init__(self) -> None:
        check_pattern(self)
        _check_names(self.name)

    def pairs(self, rows: int, columns: int, stride: int) -> int:
        """Return the words that a band of the output needs: pairs of the input's columns."""
        high, wide = ((number - 1) * stride + 3 for number in (rows, columns))
        return self.band * high * ((wide + 1) // 2)

    def is_of(self, rows: int, columns: int, pitch: int, channels: int) -> bool:
        """Return whether a function for few rows without a band computes so many.

        Args:
            rows, columns, channels: of the output.
            pitch: elements of a row of the input.
        """
        each = self.lines.get(rows)
        near = 2 * pitch + 5 * channels <= self.distance  # those of the first four outputs
        return each is not None and columns % each == 0 and near


@dataclass(frozen=True)
class CoreKernels:
    """What the kernels of a core are built from.

    Attributes:
        products, depthwise: rows in the order in which they are tried.
        header: header of the functions, which also has `htvm_mac`, `htvm_clip` and `htvm_scale`;
            empty: kernels call none.
        lanes: how many elements element-wise loops compute at once (`htvm.aot.lanes`): exactly
            four, or up to more; 0: they do not.
        pools: channels of a pool's window whose sums ``htvm_pool_sums`` adds at once; 0: one, in C.
        large: whether `htvm_scale` takes sums below 3 * 2^29, and divides by up to 2^31; the header
            also has `htvm_scale_least` then.
        unroll: elements of an element-wise operator that are computed in one turn of its loop.
    """

    products: tuple[Products, ...]
    depthwise: tuple[Depthwise, ...]
    header: str = "htvm_intrinsics.h"
    lanes: int = 0
    pools: int = 0
    large: bool = False
    unroll: int = 4

    @property
    def words(self) -> bool:
        """Whether convolutions get channels of zeros that make words (`htvm.aot.rewrites`): where
        no row copies windows."""
        return any(
            row.width == 4 and not (row.column and row.column.window) for row in self.products
        )

    @property
    def with_short_calls(self) -> CoreKernels:
        """The same with fewer pairs of pixels a call.

        Their columns are small then, and several cores can share the calls.
        """
        return self.with_pairs((128, 128))

    def with_pairs(self, pairs: tuple[int, int]) -> CoreKernels:
        """The same with other bytes of columns for a call with pairs of pixels (`Column.pairs`)."""
        products = tuple(
            row if row.column is None else replace(row, column=replace(row.column, pairs=pairs))
            for row in self.products
        )
        return replace(self, products=products)

    def row(self, name: str) -> Products | Depthwise:
        """Return the row that a loop is marked with."""
        rows: tuple[Products | Depthwise, ...] = (*self.products, *self.depthwise)
        return next(row for row in rows if row.name == name)


_EXAMPLES = 64


def check_pattern(row: Products | Depthwise) -> None:
    """Refuse a row whose function computes something else than its pattern, by examples.

    Raises:
        DefectError: it does for some operands, the smallest and the largest among them.
    """
    if row.adds is None and (row.name or row.width > 1):
        raise DefectError("nothing says what it computes", where=f"row '{row.name}' of kernels")
    if row.adds is None:
        return
    rng = np.random.default_rng(0)
    shape = (_EXAMPLES, row.width)
    data, weights = rng.integers(-128, 128, shape), rng.integers(row.least, 128, shape)
    for number, (x, w) in enumerate(((-128, row.least), (-128, 127), (127, row.least), (127, 127))):
        data[number], weights[number] = x, w
    sums = rng.integers(-(2**31), 2**31, _EXAMPLES)
    expected = (sums + (data * weights).sum(axis=1)).astype("int32")
    found = row.adds(sums.astype("int32"), data.astype("int8"), weights.astype("int8"))
    wrong = np.flatnonzero(found != expected)
    if wrong.size:
        at = int(wrong[0])
        raise DefectError(
            f"{sums[at]} and the products of {data[at].tolist()} and {weights[at].tolist()} are "
            f"{expected[at]}, its function computes {found[at]}",
            where=f"row '{row.name}' of kernels",
            hint="give it a pattern that its function computes",
        )


def _check_names(row: str, *others: str) -> None:
    """Refuse a row with functions that generated C could not call; the first names the row."""
    for name in filter(None, (row, *others)):
        if not name.startswith(PREFIX):
            raise DefectError(
                f"a function is called '{name}'",
                where=f"row '{row}' of kernels",
                hint=f"generated C calls functions whose names begin with {PREFIX}",
            )


def _all_products(sums: Any, data: Any, weights: Any) -> Any:
    """Add products that wrap around like the sums."""
    return sums + np.einsum("nw,nw->n", data.astype("int32"), weights.astype("int32"))


def _lifted_products(sums: Any, data: Any, weights: Any) -> Any:
    """Add products with weights from 0 to 255, and what that is too much."""
    lifted = (weights ^ np.int8(-128)).view("uint8").astype("int32")
    return (
        sums + (data.astype("int32") * lifted).sum(axis=1) - 128 * data.sum(axis=1, dtype="int32")
    )


def _pairs_of_16_bits(sums: Any, data: Any, weights: Any) -> Any:
    """Add two products that are added to each other in 16 bits."""
    return sums + (data.astype("int16") * weights.astype("int16")).sum(axis=1, dtype="int16")


_IN_REGISTERS = "register block of {} {} x {} channels"

# RV32IM has no multiply-accumulate; only loads can be saved: a block of px pixels and kt channels
# needs px + kt for px * kt products.  Weights keep the source's layout (fy, fx, C, K), in which the
# channels of a block are already side by side.  Cycles are measured on the simulated CV32E40P with
# a 3x3 filter and 32 to 48 channels (one decimal: estimated); more unrolling would run out of
# registers.
SCALAR = Products(
    "",
    {
        (4, 3): (2.90, 2),
        (3, 4): (2.91, 2),
        (2, 4): (2.96, 8),
        (5, 3): (2.98, 1),
        (6, 2): (2.99, 2),
        (4, 2): (3.05, 8),
        (5, 2): (3.06, 2),
        (2, 3): (3.05, 8),
        (3, 3): (3.06, 2),
        (3, 2): (3.07, 8),
        (2, 2): (3.27, 8),
        (1, 8): (3.33, 8),
        (1, 6): (3.4, 8),
        (1, 5): (3.45, 8),
        (1, 4): (3.52, 8),
        (1, 3): (3.7, 8),
        (4, 1): (3.7, 8),
        (3, 1): (3.8, 8),
        (1, 2): (4.0, 8),
        (2, 1): (4.0, 8),
        (1, 1): (5.0, 8),
    },
    _IN_REGISTERS,
    native="htvm_native_conv",
)

# Four products in one instruction.  Words are of channels of a pixel, which HWC has side by side.
# Cycles are measured as above with 32 channels, by shift.
DOT4 = Products(
    "htvm_dot4",
    {
        (4, 4): (0.418, 8),
        (5, 3): (0.426, 8),
        (3, 5): (0.426, 8),
        (4, 3): (0.440, 8),
        (3, 4): (0.442, 8),
        (6, 2): (0.460, 8),
        (2, 6): (0.463, 8),
        (3, 3): (0.467, 8),
        (5, 2): (0.472, 8),
        (2, 5): (0.475, 8),
        (4, 2): (0.492, 8),
        (2, 4): (0.496, 8),
        (3, 2): (0.527, 8),
        (2, 3): (0.528, 8),
        (2, 2): (0.566, 8),
        (1, 8): (0.586, 8),
        (1, 6): (0.612, 8),
        (4, 1): (0.631, 8),
        (1, 4): (0.634, 8),
        (2, 1): (0.742, 8),
        (1, 2): (0.755, 8),
        (1, 1): (0.977, 8),
    },
    f"{_IN_REGISTERS}, four products at once",
    width=4,
    load="htvm_load4",
    adds=_all_products,
)

# For Cortex-M cores, operands are widened once for all output channels: the windows of two
# neighbouring pixels, or one row, to halfwords where the core multiplies pairs of them, else to
# words.
_PAIRS: Blocks = {(2, 2): (0, 1), (1, 4): (0, 1), (1, 2): (0, 1)}
_COLUMNS = "columns, sums of {} {} x {} channels in registers"
_HALVES = Column(
    "uint32",
    2,
    ("htvm_widen_one", "htvm_widen_two", "htvm_widen_three"),
    long=36,
    # Counted in their loops, on the M4.
    scaled=(
        Scaled(3, 2, cycles=(1.5, 26 / 24, 11.4)),
        Scaled(2, 3, last=2, cycles=(1.6, 27 / 24, 14.2)),
        Scaled(2, 4, paired=True, cycles=(1.6, 15 / 16, 11.6)),
        Scaled(1, 4, alike=True),
    ),
    row=8,
    image="htvm_widen_image",
    window="htvm_window",
)
HALFWORDS = Products("htvm_", _PAIRS, _COLUMNS, width=4, column=_HALVES, adds=_all_products)
_DUAL = replace(HALFWORDS, column=replace(_HALVES, dual=True))
SPREAD = Products(
    "htvm_spread_",
    _PAIRS,
    _COLUMNS,
    width=4,
    column=Column(
        "int32",
        4,
        ("htvm_spread_one", "htvm_spread_two"),
        lifted=True,
        long=36,
        scaled=(Scaled(2, 2, least=144),),
    ),
    adds=_lifted_products,
)

# For cores with vectors of 16 bytes (Helium), the windows of three neighbouring pixels, or one row,
# are copied and multiplied with all channels.
VECTORS = Products(
    "htvm_rows_",
    {(3, 4): (0, 1), (1, 4): (0, 1), (1, 1): (0, 1)},
    "columns of {0} {1}, sums of {0} x {2} channels side by side",
    width=16,
    column=Column("int8", 16, ("htvm_rows_window", "", "htvm_rows_windows"), whole=True),
    adds=_all_products,
)
NINES = Depthwise("htvm_nines", width=9, window=(3, 3), narrowest={1: 4, 2: 7}, adds=_all_products)
TAPS = Depthwise("htvm_taps_sum", width=2, adds=_pairs_of_16_bits, least=-127)

# For cores with vectors of any length (RISC-V), output channels are side by side in a vector, and
# each element of the data is multiplied with all of them.  Cycles are estimated: a step takes two
# instructions for its weights and two for each pixel; the more pixels, the fewer calls.
CHANNELS = Products(
    "htvm_vectors_",
    {
        (24, 1): (0.97, 1),
        (12, 1): (0.98, 1),
        (6, 1): (1.0, 1),
        (3, 1): (1.1, 1),
        (5, 1): (1.2, 1),
        (4, 1): (1.3, 1),
        (2, 1): (1.3, 1),
        (1, 1): (1.8, 1),
    },
    "sums of {} {} in vectors of channels",
    adds=_all_products,
    whole=True,
    sums=1536,
)
CHANNEL_TAPS = Depthwise("htvm_vectors_sums", group=0, adds=_all_products)

_FOUR_PIXELS = Depthwise(pixels=4, native="htvm_native_depthwise")
BAND = Depthwise("htvm_band_", band=4, strides=(1,), width=3, adds=_all_products)
LINES = replace(BAND, name="htvm_lines_", lines={1: 4, 2: 2})
LINE = Depthwise("htvm_line_", strides=(1,), lines={1: 4}, distance=4095, adds=_all_products)
THREE_BY_THREE = Depthwise(
    "htvm_depthwise_", scaled=(3, 4, 5), distance=4095, two_rows=65_535, adds=_all_products
)
# With the DSP extension all sums of five pixels stay in registers (of six, MobileNet's do not).
_FIVE_PIXELS = replace(_FOUR_PIXELS, pixels=5)

_DSP = CoreKernels((HALFWORDS, SCALAR), (BAND, THREE_BY_THREE, _FIVE_PIXELS), pools=4, large=True)

KERNELS: Mapping[str, CoreKernels] = {
    "": CoreKernels((SCALAR,), (_FOUR_PIXELS,), header="", unroll=1),
    "corev": CoreKernels((DOT4, SCALAR), (_FOUR_PIXELS,)),
    "dsp": _DSP,
    "dsp_dual": replace(_DSP, products=(_DUAL, SCALAR)),
    # One element takes 50 instructions: four in a turn gain 1 %, and take 800 B in each kernel.
    "thumb": CoreKernels((SPREAD, SCALAR), (_FOUR_PIXELS,), large=True, unroll=1),
    "mve": CoreKernels((VECTORS, SCALAR), (NINES, TAPS, _FOUR_PIXELS), lanes=4, pools=8),
    "rvv": CoreKernels(
        (CHANNELS, SCALAR), (CHANNEL_TAPS, _FOUR_PIXELS), header="htvm_vectors.h", lanes=16
    ),
}
"""By what a core has (`byoc_dory.soc.cores.Host.simd`)."""


def _of_rows(kernels: CoreKernels) -> CoreKernels:
    """Return what computes one or two rows of depthwise convolutions, with smaller columns."""
    return replace(kernels.with_pairs((128, 512)), depthwise=(LINE, LINES, *kernels.depthwise))


KERNELS_OF_ROWS: Mapping[str, CoreKernels] = {
    **KERNELS,
    **{core: _of_rows(KERNELS[core]) for core in ("dsp", "dsp_dual")},
}
"""The same for kernels that compute few rows of a map at a time."""
