"""Convolutions between SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND, which are dilated convolutions.

Where a runtime has no dilation, exporters deal out the pixels of a map to a batch of smaller maps,
convolve these, and put them together again.  Read as one operator, no batch is left.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from htvm.frontend.tflite.file import Spread, TfliteFile, TfliteOperator, TfliteTensor

_log = logging.getLogger(__name__)

_VALID = 1
_DEALT = ("SPACE_TO_BATCH_ND",)
_CONVOLUTIONS = {"CONV_2D": (1, 2, 4, 5), "DEPTHWISE_CONV_2D": (1, 2, 5, 6)}
"""Kind -> the fields of strides and dilations, all of which must be 1."""
_TWO_AXES = (tuple(_CONVOLUTIONS), _DEALT)
_ONE_AXIS = (("RESHAPE", "SQUEEZE"), tuple(_CONVOLUTIONS), ("EXPAND_DIMS",), _DEALT)
"""Kinds of the operators from a BATCH_TO_SPACE_ND back to the first."""


def with_dilation(file: TfliteFile) -> TfliteFile:
    """Return the file with these operators as one dilated convolution, where they are."""
    readers = Counter(
        tensor.index for operator in file.operators for tensor in operator.inputs if tensor
    ) + Counter(tensor.index for tensor in file.outputs)
    makers = {tensor.index: each for each in file.operators for tensor in each.outputs}
    replacements: dict[int, TfliteOperator] = {}
    gone: set[int] = set()
    for last in file.operators:
        for kinds, merge in ((_TWO_AXES, _over_two_axes), (_ONE_AXIS, _over_one_axis)):
            chain = _chain(last, makers, readers, kinds)
            merged = merge(*chain) if chain is not None else None
            if merged is not None and chain is not None:
                gone |= {operator.index for operator in chain}
                replacements |= {operator.index: operator for operator in merged}
    if not replacements:
        return file
    _log.info("%d operators of convolutions between blocks read as dilated ones", len(replacements))
    left = [each for each in file.operators if each.index not in gone or each.index in replacements]
    return replace(file, operators=tuple(replacements.get(each.index, each) for each in left))


def _chain(
    last: TfliteOperator,
    makers: dict[int, TfliteOperator],
    readers: Counter[int],
    kinds: Sequence[Sequence[str]],
) -> tuple[TfliteOperator, ...] | None:
    """Return the operators before a BATCH_TO_SPACE_ND and itself, in order.

    ``None`` if they are of other kinds, or something else reads their results.
    """
    chain: list[TfliteOperator] = [last]
    for wanted in kinds:
        source = chain[-1].inputs[0] if chain[-1].inputs else None
        maker = None if source is None else makers.get(source.index)
        if maker is None or maker.kind not in wanted or readers[maker.outputs[0].index] != 1:
            return None
        chain.append(maker)
    return tuple(reversed(chain)) if last.kind == "BATCH_TO_SPACE_ND" else None


def _over_two_axes(
    first: TfliteOperator, middle: TfliteOperator, last: TfliteOperator
) -> tuple[TfliteOperator, ...] | None:
    spread = _spread(first, middle, last)
    if spread is None or len(first.outputs[0].shape) != 4:
        return None
    inputs = (first.inputs[0], *middle.inputs[1:])
    whole = replace(middle, index=last.index, inputs=inputs, outputs=last.outputs, spread=spread)
    return (whole,)


def _over_one_axis(
    first: TfliteOperator,
    lifted: TfliteOperator,
    middle: TfliteOperator,
    dropped: TfliteOperator,
    last: TfliteOperator,
) -> tuple[TfliteOperator, ...] | None:
    """A convolution of one axis has a height of 1 in between."""
    spread, source, result = _spread(first, middle, last), first.inputs[0], last.outputs[0]
    if spread is None or source is None or len(source.shape) != 3 or len(result.shape) != 3:
        return None
    if lifted.outputs[0].shape[1:2] != (1,) or middle.outputs[0].shape[1:2] != (1,):
        return None
    ends = [
        replace(each.outputs[0], shape=(shape[0], 1, *shape[1:]))
        for each, shape in ((lifted, source.shape), (middle, result.shape))
    ]
    given = dropped.inputs[1:]
    if given and given[0] is not None:
        sizes = np.asarray(result.shape, given[0].dtype)
        given = (replace(given[0], shape=sizes.shape, data=sizes), *given[1:])
    return (
        replace(lifted, inputs=(source, *lifted.inputs[1:]), outputs=(ends[0],)),
        replace(middle, inputs=(ends[0], *middle.inputs[1:]), outputs=(ends[1],), spread=spread),
        replace(dropped, inputs=(ends[1], *given), outputs=(result,)),
    )


def _spread(first: TfliteOperator, middle: TfliteOperator, last: TfliteOperator) -> Spread | None:
    """Return what the blocks amount to, if they amount to dilation and padding."""
    options = middle.options
    if options is None or options.integer(0, "b") != _VALID:
        return None
    if any(options.integer(field, "i", 1) != 1 for field in _CONVOLUTIONS[middle.kind]):
        return None
    axes = len(first.outputs[0].shape) - 2
    if axes not in (1, 2):
        return None
    blocks, again = _numbers(first, 1, (axes,)), _numbers(last, 1, (axes,))
    pads, crops = _numbers(first, 2, (axes, 2)), _numbers(last, 2, (axes, 2))
    if blocks is None or pads is None or crops is None or blocks != again:
        return None
    if axes == 1:
        blocks, pads, crops = (1, *blocks), (0, 0, *pads), (0, 0, *crops)
    if not _same_numbers(first.inputs[0], first.outputs[0]):
        return None
    if not _same_numbers(middle.outputs[0], last.outputs[0]):
        return None
    padding = tuple(pad - crop for pad, crop in zip(pads, crops, strict=True))
    if min(blocks) < 1 or min(pads) < 0 or min(crops) < 0 or min(padding) < 0:
        return None
    return Spread((blocks[0], blocks[1]), (padding[0], padding[2], padding[1], padding[3]))


def _numbers(
    operator: TfliteOperator, index: int, allowed: tuple[int, ...]
) -> tuple[int, ...] | None:
    tensor = operator.inputs[index] if index < len(operator.inputs) else None
    known = tensor is not None and tensor.data is not None and tensor.dtype == "int32"
    if not known or tensor is None or tensor.data is None or tensor.shape != allowed:
        return None
    return tuple(int(number) for number in tensor.data)


def _same_numbers(first: TfliteTensor | None, second: TfliteTensor) -> bool:
    return (
        first is not None
        and (first.dtype, first.scales) == (second.dtype, second.scales)
        and first.zero_points == second.zero_points
    )
