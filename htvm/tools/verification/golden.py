"""The user's own outputs, compared with those of the run and of the source model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from byoc_dory.errors import InputError
from htvm.arrays import read_arrays
from htvm.tools.verification.types import GoldenCheck

if TYPE_CHECKING:
    from htvm.model import TensorInfo
    from htvm.tools.verification.types import Number

Array: TypeAlias = npt.NDArray[Any]
Golden: TypeAlias = "str | Path | Mapping[str, npt.NDArray[np.generic]]"


def bind_golden(infos: Sequence[TensorInfo], golden: Golden) -> dict[str, Array]:
    """Return the user's outputs by name; outputs may be missing.

    Args:
        infos: the model's outputs.
        golden: a mapping from output name to array, or an ``.npz`` file with such arrays; for a
            model with one output also an ``.npy`` file, or an ``.npz`` file with one array of any
            name.

    Raises:
        InputError: the file holds no arrays, a name, shape or dtype is wrong, or nothing is given.
    """
    wanted = ", ".join(f"{info.name}: {info.dtype}{list(info.shape)}" for info in infos)
    where, named = "golden", golden
    if isinstance(golden, (str, Path)):
        where = f"golden '{golden}'"
        named = read_arrays(Path(golden), "give an .npz file with the outputs' names", "outputs")
        if len(named) == 1 and len(infos) == 1:
            named = {infos[0].name: next(iter(named.values()))}
    if not isinstance(named, Mapping):
        raise InputError(
            f"{type(named).__name__} instead of arrays by name",
            where=where,
            hint=f"give a dict or an .npz file; the model gives {wanted}",
        )
    if not named:
        raise InputError(
            "there are no outputs in it", where=where, hint=f"the model gives {wanted}"
        )
    known = {info.name: info for info in infos}
    for name, array in named.items():
        if name not in known:
            raise InputError(
                f"the model has no output '{name}'", where=where, hint=f"it gives {wanted}"
            )
        _check(known[name], array, where)
    return dict(named)


def _check(info: TensorInfo, array: object, where: str) -> None:
    where = f"{where}, output '{info.name}'"
    if not isinstance(array, np.ndarray):
        raise InputError(f"a {type(array).__name__} is not a numpy array", where=where)
    if array.dtype != np.dtype(info.dtype):
        raise InputError(
            f"dtype {array.dtype} instead of {info.dtype}", where=where,
            hint="give the integers that the model gives, not real values"
            if info.dtype != "float32" else "convert it with array.astype('float32')",
        )  # fmt: skip
    if array.shape != tuple(info.shape):
        raise InputError(
            f"shape {list(array.shape)} instead of {list(info.shape)}", where=where,
            hint="give the outputs of one inference, with the batch axis",
        )  # fmt: skip


def compare_golden(
    infos: Sequence[TensorInfo],
    golden: Mapping[str, Array],
    outputs: Sequence[Array],
    source: Sequence[Array],
) -> tuple[GoldenCheck, ...]:
    """Compare a run's outputs with the user's.

    Args:
        infos: the model's outputs.
        golden: outputs from `bind_golden`.
        outputs: outputs of the run.
        source: outputs of the source model as imported, for the same inputs.
    """
    return tuple(
        _compared(info, golden[info.name], run, own)
        for info, run, own in zip(infos, outputs, source, strict=True)
        if info.name in golden
    )


def _compared(info: TensorInfo, golden: Array, run: Array, source: Array) -> GoldenCheck:
    wrong = run != golden
    missed = int((source != golden).sum())
    if not wrong.any():
        return GoldenCheck(info.name, wrong.size, 0, source_different=missed)
    first = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
    noise = run.astype(np.float64) - golden.astype(np.float64)
    signal = golden.astype(np.float64) - (info.zero_point or 0)
    value, expected, largest = (x.item() for x in (run[first], golden[first], np.abs(noise).max()))
    return GoldenCheck(
        info.name, wrong.size, int(wrong.sum()), _decibels(signal, noise),
        _plain(largest, run.dtype), first, value, expected, missed,
    )  # fmt: skip


def _plain(value: float, dtype: np.dtype[Any]) -> Number:
    return value if dtype.kind == "f" else int(value)


def _decibels(signal: Array, noise: Array) -> float:
    """Return 10 log10 of the ratio of the powers."""
    power = float((signal**2).sum())
    return 10.0 * float(np.log10(power / float((noise**2).sum()))) if power else -np.inf
