"""Helper: regions written as files, and read with all checks, as the late assembler does in C."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import msgspec

from byoc_dory.errors import ModelError
from byoc_dory.soc.dla.region_file import FORMAT, VERSION, LayerEntry, RegionFile

_ALIGN = 16


def write_region(region: RegionFile, weights: bytes, path: Path) -> tuple[Path, Path]:
    """Write a region as ``path`` (JSON) and its weights beside it (``.bin``); return both."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(region), indent=1) + b"\n")
    beside = path.with_suffix(".bin")
    beside.write_bytes(weights)
    return path, beside


def read_region(text: bytes, weights: bytes | None = None, where: str = "") -> RegionFile:
    """Return the region of a JSON text.

    Args:
        text: the JSON.
        weights: the contents of the file beside it, to check; None to check only the JSON.
        where: name of the file, for messages.

    Raises:
        ModelError: the text is truncated or no region, its schema is newer, its layers contradict
            each other, or the weights are those of another network.
    """
    where = where or "region file"
    try:
        head = msgspec.json.decode(text, type=dict[str, object])
    except msgspec.DecodeError as error:
        raise ModelError(
            f"this is no JSON: {error}", where=where, hint="is it truncated? write it again"
        ) from error
    if head.get("format") != FORMAT:
        raise ModelError(
            f"the format is {head.get('format')!r}, not {FORMAT!r}",
            where=where,
            hint="give the JSON of a region",
        )
    if head.get("version") != VERSION:
        raise ModelError(
            f"its schema has version {head.get('version')!r}, this program knows {VERSION}",
            where=where,
            hint="read it with the version of HTVM that wrote it, or write it again",
        )
    try:
        region = msgspec.json.decode(text, type=RegionFile)
    except msgspec.ValidationError as error:
        raise ModelError(str(error), where=where, hint="write it again") from error
    _check(region, where)
    if weights is not None:
        _check_weights(region, weights, where)
    return region


def _check_weights(region: RegionFile, weights: bytes, where: str) -> None:
    if len(weights) != region.weights_bytes:
        raise ModelError(
            f"there are {len(weights)} B of weights, not {region.weights_bytes}",
            where=where,
            hint="give the file that was written with it",
        )
    found = sha256(weights).hexdigest()
    if found != region.weights_sha256:
        raise ModelError(
            f"the weights are those of another network: their SHA-256 begins with {found[:12]}, "
            f"not {region.weights_sha256[:12]}",
            where=where,
            hint="give the file that was written with it",
        )


def _check(region: RegionFile, where: str) -> None:
    """Check that the numbers of layers agree with each other."""
    written = {n for n, tensor in enumerate(region.tensors) if tensor.kind == "input"}
    for tensor in region.tensors:
        if min(tensor.channels, tensor.rows, tensor.columns) < 1:
            raise ModelError(f"tensor '{tensor.name}' has a size below 1", where=where)
    for layer in region.layers:
        place = f"{where}, layer '{layer.name}'"
        used = (*layer.inputs, layer.output)
        if len(layer.inputs) != 1 + (layer.op == "add") or not all(
            0 <= number < len(region.tensors) for number in used
        ):
            raise ModelError(f"it has operands {layer.inputs}", where=place)
        if not written.issuperset(layer.inputs) or layer.output in written:
            raise ModelError("a tensor is read before it is written, or written twice", where=place)
        written.add(layer.output)
        _check_layer(region, layer, place)


def _check_layer(region: RegionFile, layer: LayerEntry, place: str) -> None:
    source, result = region.source(layer), region.result(layer)
    for axis, size, out in ((0, source.rows, result.rows), (1, source.columns, result.columns)):
        kernel, stride = layer.kernel[axis], layer.stride[axis]
        if kernel < 1 or stride < 1 or min(layer.pad) < 0 or max(kernel, stride) > 0x7FFF:
            raise ModelError(f"the window is {layer.kernel}, {layer.stride}", where=place)
        span = size + layer.pad[axis] + layer.pad[axis + 2] - kernel
        if span < 0 or span // stride + 1 != out:
            raise ModelError(f"its result cannot have {out} rows or columns", where=place)
    if layer.op in ("add", "depthwise") and source.channels != result.channels:
        raise ModelError(f"{source.channels} channels become {result.channels}", where=place)
    if layer.op in ("add", "dense") and (layer.kernel, layer.stride) != ((1, 1), (1, 1)):
        raise ModelError(f"a window of {layer.kernel}", where=place)
    if not 0 <= layer.shift <= 31 or not -128 <= layer.clip[0] <= layer.clip[1] <= 127:
        raise ModelError(f"shift {layer.shift}, clip {layer.clip}", where=place)
    if layer.weights % _ALIGN or layer.weights < 0:
        raise ModelError(f"its weights are at {layer.weights}", where=place)
    if layer.weights + region.block_bytes(layer) > region.weights_bytes:
        raise ModelError("its weights exceed those of the region", where=place)
