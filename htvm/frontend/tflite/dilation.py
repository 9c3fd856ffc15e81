"""Convolutions between SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND, which are dilated convolutions.

Where a runtime has no dilation, exporters deal out the pixels of a map to a batch of smaller maps,
convolve these, and put them together again.  Read as one operator, no batch is left.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import replace

from htvm.frontend.tflite.file import Spread, TfliteFile, TfliteOperator, TfliteTensor

__all__ = ["with_dilation"]

_log = logging.getLogger(__name__)

_VALID = 1
_CONVOLUTIONS = {"CONV_2D": (1, 2, 4, 5), "DEPTHWISE_CONV_2D": (1, 2, 5, 6)}
"""Kind -> the fields of strides and dilations, all of which must be 1."""


def with_dilation(file: TfliteFile) -> TfliteFile:
    """Return the file with these three operators as one dilated convolution, where they are."""
    readers = Counter(
        tensor.index for operator in file.operators for tensor in operator.inputs if tensor
    ) + Counter(tensor.index for tensor in file.outputs)
    makers = {tensor.index: each for each in file.operators for tensor in each.outputs}
    made: dict[int, TfliteOperator] = {}
    gone: set[int] = set()
    for last in file.operators:
        chain = _chain(last, makers, readers)
        if chain is not None:
            first, middle = chain
            spread = _spread(first, middle, last)
            if spread is not None:
                gone |= {first.index, middle.index}
                inputs = (first.inputs[0], *middle.inputs[1:])
                made[last.index] = replace(
                    middle, index=last.index, inputs=inputs, outputs=last.outputs, spread=spread
                )
    if not made:
        return file
    _log.info("%d convolutions between blocks read as dilated ones", len(made))
    left = [each for each in file.operators if each.index not in gone]
    return replace(file, operators=tuple(made.get(each.index, each) for each in left))


def _chain(
    last: TfliteOperator, makers: dict[int, TfliteOperator], readers: Counter[int]
) -> tuple[TfliteOperator, TfliteOperator] | None:
    """Return the two operators before a BATCH_TO_SPACE_ND, if nothing else reads their results."""
    found: list[TfliteOperator] = [last]
    for kinds in (tuple(_CONVOLUTIONS), ("SPACE_TO_BATCH_ND",)):
        source = found[-1].inputs[0] if found[-1].inputs else None
        before = None if source is None else makers.get(source.index)
        if before is None or before.kind not in kinds or readers[before.outputs[0].index] != 1:
            return None
        found.append(before)
    return (found[2], found[1]) if last.kind == "BATCH_TO_SPACE_ND" else None


def _spread(first: TfliteOperator, middle: TfliteOperator, last: TfliteOperator) -> Spread | None:
    """Return what the blocks amount to, if they amount to dilation and padding."""
    options = middle.options
    if options is None or options.integer(0, "b") != _VALID:
        return None
    if any(options.integer(field, "i", 1) != 1 for field in _CONVOLUTIONS[middle.kind]):
        return None
    blocks, again = _numbers(first, 1), _numbers(last, 1)
    pads, crops = _numbers(first, 2), _numbers(last, 2)
    if blocks is None or pads is None or crops is None or blocks != again or len(blocks) != 2:
        return None
    if not _same_numbers(first.inputs[0], first.outputs[0]):
        return None
    if not _same_numbers(middle.outputs[0], last.outputs[0]):
        return None
    padding = tuple(pad - crop for pad, crop in zip(pads, crops, strict=True))
    if min(blocks) < 1 or min(pads) < 0 or min(crops) < 0 or min(padding) < 0:
        return None
    return Spread((blocks[0], blocks[1]), (padding[0], padding[2], padding[1], padding[3]))


def _numbers(operator: TfliteOperator, at: int) -> tuple[int, ...] | None:
    tensor = operator.inputs[at] if at < len(operator.inputs) else None
    known = tensor is not None and tensor.data is not None and tensor.dtype == "int32"
    wanted = (2,) if at == 1 else (2, 2)
    if not known or tensor is None or tensor.data is None or tensor.shape != wanted:
        return None
    return tuple(int(number) for number in tensor.data)


def _same_numbers(first: TfliteTensor | None, second: TfliteTensor) -> bool:
    return (
        first is not None
        and (first.dtype, first.scales) == (second.dtype, second.scales)
        and first.zero_points == second.zero_points
    )
