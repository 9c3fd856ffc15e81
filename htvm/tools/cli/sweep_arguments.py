"""The arguments of ``htvm sweep``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from byoc_dory.soc.numbers import known_parameters
from byoc_dory.soc.parameters import Parameter, parse_size
from byoc_dory.soc.registry import resolve
from htvm.errors import TargetError
from htvm.shown import optional
from htvm.tools.cli.limits import read_named

_MOST = 100_000  # values of a range


def split_words(words: Sequence[str], target: str) -> tuple[list[str], dict[str, list[str]]]:
    """Return the models, and the values of each parameter.

    Args:
        words: models, and ``--NAME VALUES`` or ``--NAME=VALUES``.
        target: name of the target whose parameters they are.

    Raises:
        TargetError: a parameter has no values or is given twice, there is none, or a range is bad.
    """
    parameters = {entry.name: entry for entry in known_parameters(resolve(target).soc)}
    models: list[str] = []
    grid: dict[str, list[str]] = {}
    left = iter(words)
    for word in left:
        if not word.startswith("-"):
            models.append(word)
            continue
        name, equals, values = word.lstrip("-").partition("=")
        if not equals:
            values = next(left, "")
        name = name.replace("-", "_")
        if not values:
            raise TargetError(
                f"{word} has no values", where="htvm sweep", hint=f"write --{name} VALUE,VALUE"
            )
        if name in grid:
            raise TargetError(
                f"--{name} is given twice", where="htvm sweep", hint="separate values by commas"
            )
        grid[name] = [
            value
            for text in values.split(",")
            for value in _values(text.strip(), parameters.get(name))
        ]
    if not models:
        raise TargetError("there is no model", where="htvm sweep", hint="name a file or zoo:NAME")
    return models, grid


def _values(text: str, parameter: Parameter | None) -> list[str]:
    """Return the values that ``LOW..HIGH`` stands for, or the text itself."""
    low, dots, high = text.partition("..")
    if not dots or parameter is None or parameter.kind not in ("integer", "bytes"):
        return [text]
    first, last = parse_size(low), parse_size(high)
    if parameter.choices:
        inside = [value for value in parameter.choices if isinstance(value, int)]
    elif first is None or last is None or (last - first) // parameter.step >= _MOST:
        inside = []
    else:
        step = parameter.step
        inside = list(range(-(-first // step) * step, last + 1, step))
    found = [
        str(value) for value in inside if first is not None and last is not None
        and first <= value <= last
    ]  # fmt: skip
    if not found:
        raise TargetError(
            f"{text} stands for no values, or for more than {_MOST:,}",
            where=f"--{parameter.name}",
            hint=f"possible are {parameter.domain}",
        )
    return found


def area_of(texts: Sequence[str]) -> dict[str, float]:
    """Return the area of each unit of a parameter, from ``NAME=AREA``.

    Raises:
        InputError: a text has another form.
    """
    what = "parameter with an area"
    return dict(read_named(text, float, what, "--area", "pes=310") for text in texts)


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Yield a client of the dask scheduler at an address; None without an address.

    Raises:
        TargetError: nothing answers there.
        DependencyError: ``distributed`` is not installed.
    """
    if address is None:
        yield None
        return
    distributed = optional("distributed", "sweeps on a cluster", "cluster")
    try:
        client = distributed.Client(address, timeout=10)
    except (OSError, ValueError) as error:
        raise TargetError(
            f"no dask scheduler answers at {address}",
            where="--scheduler",
            hint="start one with `dask scheduler`, and workers with `dask worker`",
        ) from error
    with client:
        yield client
