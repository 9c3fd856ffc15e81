"""Operators that move elements: reshapes, paddings, concatenations, slices, transpositions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.operators import Activation, Applied
from htvm.frontend.scales import converted
from htvm.frontend.tflite.activations import clipped
from htvm.frontend.tflite.file import TfliteTensor
from htvm.frontend.tflite.flatbuffer import FlatTable
from htvm.frontend.tflite.fold import strided
from htvm.frontend.tflite.reader import OperatorReader, constant_array
from patterns.op import INT8, Op
from patterns.ops.moves.concat import Attach, Concat
from patterns.ops.moves.pad import Pad, PadAxes
from patterns.ops.moves.reshape import Reshape, Slice, SpaceToDepth, Transpose

_MOST_PADDING = 1 << 12


# ------------------------------------------------------------------------------ reshapes


def reshape(op: OperatorReader) -> Sequence[Applied]:
    """RESHAPE to a constant shape."""
    op.count((1, 2))
    source, result = op.same_step(), op.result()
    check_reshape(op, source, result)
    return [op.apply(Reshape(result.shape), op.value(source))]


def check_reshape(op: OperatorReader, source: TfliteTensor, result: TfliteTensor) -> None:
    """Check that the shape given to a RESHAPE, as input or option, is its output's."""
    if math.prod(source.shape) != math.prod(result.shape):
        raise op.corrupt(f"a reshape of {source.shape} to {result.shape}")
    if len(op.operator.inputs) == 2:
        target = op.constant(1, "sizes")
    else:
        found = op.options(17).vector(0, "int32")
        target = () if found is None else tuple(int(size) for size in found)
    free = target.count(-1)
    known_size = math.prod(size for size in target if size != -1)
    whole = math.prod(source.shape)
    if free > 1 or known_size < 1 or whole % known_size or (not free and known_size != whole):
        raise op.corrupt(f"a reshape of {source.shape} to {target}")
    op.result_shape([whole // known_size if size == -1 else size for size in target])


def same_elements(op: OperatorReader, count: int) -> Sequence[Applied]:
    """SQUEEZE removes axes of size 1, EXPAND_DIMS adds one."""
    op.count((count,))
    source, result = op.same_step(), op.result()
    op.ignore(1)  # the axes
    if [size for size in source.shape if size > 1] != [size for size in result.shape if size > 1]:
        raise op.corrupt(f"an output of shape {result.shape} of an input of shape {source.shape}")
    return [op.apply(Reshape(result.shape), op.value(source))]


def transpose(op: OperatorReader) -> Sequence[Applied]:
    """TRANSPOSE by a constant permutation."""
    op.count((2,))
    source = op.same_step()
    rank = len(source.shape)
    axes = tuple(op.axis(axis, rank) for axis in op.constant(1, "axes"))
    if sorted(axes) != list(range(rank)):
        raise op.corrupt(f"a permutation {axes} of {rank} axes")
    return [op.apply(Transpose(axes), op.value(source))]


# ------------------------------------------------------------------------------ paddings


def pad(op: OperatorReader, count: int) -> Sequence[Applied]:
    """PAD with the number zero, PADV2 with a constant."""
    op.count((count,))
    source = op.same_step()
    rank = len(source.shape)
    if op.tensor(1).shape != (rank, 2):
        raise op.corrupt(f"paddings of shape {op.tensor(1).shape}")
    numbers = op.constant(1, "paddings")
    if any(not 0 <= width <= _MOST_PADDING for width in numbers):
        raise op.corrupt(f"paddings {numbers}")
    widths = list(zip(numbers[::2], numbers[1::2], strict=True))
    value = _padding_value(op, source)
    if (
        op.dtype == "int8"
        and rank == 4
        and not any(widths[0])
        and not any(widths[3])
        and source.shape[0] == 1
    ):
        (top, bottom), (left, right) = widths[1:3]
        return [op.apply(Pad(value, (top, left, bottom, right)), op.value(source))]
    return [op.apply(PadAxes(value, tuple(widths)), op.value(source))]


def _padding_value(op: OperatorReader, source: TfliteTensor) -> int:
    if len(op.operator.inputs) == 2:
        return op.step(source).zero_point
    value = op.quantized(op.tensor(2))
    if value.data is None or value.data.size != 1:
        raise op.unsupported(f"a padding with {value.place}", "give one constant value")
    if not op.same_quantization(value, source):
        raise op.unsupported(
            f"a padding value with a scale of its own ({value.place})",
            "quantize it like the input",
        )
    return int(value.data[0])


# ------------------------------------------------------------------------------ concatenation


def concatenation(op: OperatorReader) -> Sequence[Applied]:
    """CONCATENATION; parts of another scale are rescaled to the output's first.

    TFLite refuses these parts and TFLite Micro copies their integers; the meaning is the numbers.
    """
    op.count(range(1, 1 << 10))
    result = op.result()
    parts = [op.quantized(op.tensor(at)) for at in range(len(op.operator.inputs))]
    options, axis = concatenated(op, parts)
    clip = op.clip(options, 1)
    values = [_part_or_constant(op, part, result, at) for at, part in enumerate(parts)]
    inputs = tuple(value for value in values if isinstance(value, Activation))
    if len(inputs) == len(parts):
        whole = op.apply(Concat(axis), *inputs, sub=len(parts))
    else:
        whole = _attached(op, values, axis)
    if clip == op.limits:
        return [whole]
    return [clipped(op, Activation.of(whole), clip, sub=2 * len(parts) + 1)]


def _part_or_constant(
    op: OperatorReader, part: TfliteTensor, result: TfliteTensor, index: int
) -> Activation | Array:
    """Return a part in the output's scale; what rescales it is the ``index``-th operator."""
    if op.same_quantization(part, result):
        return op.value(part) if part.data is None else constant_array(part)
    if part.data is not None or op.dtype != "int8":
        kind = f"an {op.dtype}" if part.data is None else "a constant"
        raise op.unsupported(
            f"{kind} part with a scale of its own ({part.place})", "quantize it like the output"
        )
    convert = converted(op.step(part), op.step(result), INT8)
    return Activation.of(op.apply(convert, op.value(part), sub=index))


def _attached(op: OperatorReader, values: Sequence[Activation | Array], axis: int) -> Applied:
    """Join parts, some of them constant, from the first to the last."""
    made, sub = values[0], len(values)
    for value in values[1:]:
        if isinstance(made, np.ndarray) and isinstance(value, np.ndarray):
            made = np.concatenate([made, value], axis)
            continue
        inputs = tuple(each for each in (made, value) if isinstance(each, Activation))
        constant = next((each for each in (made, value) if isinstance(each, np.ndarray)), None)
        step: Op = Concat(axis)
        if constant is not None:
            step = Attach(np.asarray(constant, order="C"), axis, first=constant is made)
        made = Activation.of(op.apply(step, *inputs, sub=sub))
        sub += 1
    if not isinstance(made, Activation) or isinstance(made.origin, str):
        raise op.unsupported("all parts are constant", "fold constants when exporting")
    return made.origin


def concatenated(op: OperatorReader, parts: Sequence[TfliteTensor]) -> tuple[FlatTable, int]:
    """Return the options of a CONCATENATION and its axis; check the shapes."""
    options, rank = op.options(10), len(op.operator.outputs[0].shape)
    axis = op.axis(options.integer(0, "i"), rank)
    shape = list(parts[0].shape)
    frames = {(*part.shape[:axis], *part.shape[axis + 1 :]) for part in parts}
    if len(frames) != 1 or any(len(part.shape) != rank for part in parts):
        raise op.corrupt(f"parts of shapes {', '.join(str(part.shape) for part in parts)}")
    shape[axis] = sum(part.shape[axis] for part in parts)
    op.result_shape(shape)
    return options, axis


# ------------------------------------------------------------------------------ slices


def strided_slice(op: OperatorReader) -> Sequence[Applied]:
    """STRIDED_SLICE with constant bounds; neither an ellipsis nor a new axis."""
    op.count((4,))
    source, options = op.same_step(), op.options(32)
    rank = len(source.shape)
    begin, end, strides = (op.constant(at, "bounds") for at in (1, 2, 3))
    masks = [options.integer(field, "i") for field in range(5)]
    relative = bool(options.integer(5, "B"))
    if masks[2] or masks[3]:
        raise op.unsupported("a slice with an ellipsis or a new axis", "name all axes")
    if not len(begin) == len(end) == len(strides) <= rank or 0 in strides:
        raise op.corrupt(f"a slice from {begin} to {end} in steps of {strides} of {rank} axes")
    first, sizes, steps, shape = [], [], [], []
    for axis, size in enumerate(source.shape):
        places = range(size)
        if axis < len(begin):
            bounds = (begin[axis], end[axis], strides[axis])
            try:
                places = strided(axis, size, bounds, masks, relative=relative)
            except IndexError as error:
                raise op.corrupt(f"{error} along axis {axis} of {source.shape}") from None
        if axis >= len(begin) or not masks[4] & 1 << axis:
            shape.append(len(places))
        if not places:
            raise op.unsupported(
                f"a slice of {source.shape} that leaves nothing of axis {axis}", "leave it out"
            )
        first.append(places[0])
        sizes.append(len(places))
        steps.append(places.step)
    if not shape:
        raise op.unsupported("a slice to a scalar", "keep one axis")
    part = part_of(op, source, first, sizes, steps)
    if len(shape) == rank:
        return [part]
    return [op.apply(Reshape(tuple(shape)), Activation.of(part), sub=1)]


def slices(op: OperatorReader) -> Sequence[Applied]:
    """SLICE with constant begin and size."""
    op.count((3,))
    source = op.same_step()
    begin, given = op.constant(1, "bounds"), op.constant(2, "sizes")
    if not len(begin) == len(given) == len(source.shape):
        raise op.corrupt(f"a slice from {begin} of {given} of {source.shape}")
    sizes = [
        size - first if count == -1 else count
        for size, first, count in zip(source.shape, begin, given, strict=True)
    ]
    for size, first, count in zip(source.shape, begin, sizes, strict=True):
        if first < 0 or count < 1 or first + count > size:
            raise op.corrupt(f"a slice from {begin} of {given} of {source.shape}")
    return [part_of(op, source, begin, sizes, [1] * len(sizes))]


def space_to_depth(op: OperatorReader) -> Sequence[Applied]:
    """SPACE_TO_DEPTH: the pixels of a block become channels of one."""
    op.count((1,))
    source = op.same_step()
    op.batch(source, 4)
    block = op.positive(op.options(19), 0, "block size")
    _, y, x, _ = source.shape
    if y % block or x % block:
        raise op.corrupt(f"blocks of {block}x{block} of a map of shape {source.shape}")
    return [op.apply(SpaceToDepth(block), op.value(source))]


def split(op: OperatorReader) -> Sequence[Applied]:
    """SPLIT into equal parts along a constant axis."""
    outputs = len(op.operator.outputs)
    op.count((2,), outputs)
    source = op.same_step(1)
    (number,) = op.constant(0, "axes")[:1] or (len(source.shape),)
    axis = op.axis(number, len(source.shape))
    if op.options(35).integer(0, "i") != outputs or source.shape[axis] % outputs:
        raise op.corrupt(f"{outputs} equal parts of {source.shape} along axis {axis}")
    return _parts(op, source, axis, [source.shape[axis] // outputs] * outputs)


def split_v(op: OperatorReader) -> Sequence[Applied]:
    """SPLIT_V into parts of constant sizes."""
    outputs = len(op.operator.outputs)
    op.count((3,), outputs)
    source = op.same_step()
    (number,) = op.constant(2, "axes")[:1] or (len(source.shape),)
    axis, sizes = op.axis(number, len(source.shape)), list(op.constant(1, "sizes"))
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = source.shape[axis] - sum(sizes) - 1
    if len(sizes) != outputs or min(sizes) < 1 or sum(sizes) != source.shape[axis]:
        raise op.corrupt(f"parts of {tuple(sizes)} of {source.shape} along axis {axis}")
    return _parts(op, source, axis, sizes)


def _parts(
    op: OperatorReader, source: TfliteTensor, axis: int, sizes: Sequence[int]
) -> Sequence[Applied]:
    parts = []
    for at, size in enumerate(sizes):
        begin, shape = [0] * len(source.shape), list(source.shape)
        begin[axis], shape[axis] = sum(sizes[:at]), size
        parts.append(part_of(op, source, begin, shape, [1] * len(shape), sub=at))
    return parts


def part_of(
    op: OperatorReader,
    source: TfliteTensor,
    begin: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int],
    sub: int = 0,
) -> Applied:
    """Apply a slice of an input, with one number for each axis."""
    part = Slice(tuple(begin), tuple(sizes), tuple(strides))
    return op.apply(part, op.value(source), sub=sub)
