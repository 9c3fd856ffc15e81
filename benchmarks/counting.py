"""What a build executes: counted in a process of its own, from outside, without times.

    python -m benchmarks.counting MODEL TARGET [--shapes A,B,C] [--seconds]

prints a `Counts` as JSON; ``--seconds`` the processor time of the same build without counting.
Builds take nothing from a cache, and C is not compiled.
"""

from __future__ import annotations

import cProfile
import inspect
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import click

__all__ = ["HERE", "PACKAGES", "Counts", "counted", "seconds"]

HERE = Path(__file__).resolve().parents[1]
PACKAGES = ("htvm", "byoc_dory", "patterns")
"""The product: its code is what is counted."""


@dataclass(frozen=True)
class Counts:
    """What one build executed of the product.

    Attributes:
        imported: names of the modules that were loaded when it was done.
        executed: of those, the modules with a function that the build called.
        calls: times that each function was called: ``module:qualified name`` -> count. Functions
            of one name in one module are one; lambdas, comprehensions and generator expressions
            belong to the function around them. Resuming a generator counts as a call.
        shapes: names of the classes whose objects had all sizes of the operator searched for among
            their own fields.
        carriers: names of the classes whose objects had such an object in a field.
    """

    imported: tuple[str, ...]
    executed: tuple[str, ...]
    calls: Mapping[str, int]
    shapes: tuple[str, ...] = ()
    carriers: tuple[str, ...] = ()

    def called(self, name: str, module: str = "") -> int:
        """Return how often functions and methods of this name were called, in ``module`` or all."""
        return sum(
            count
            for function, count in self.calls.items()
            if function.partition(":")[0].startswith(module)
            and function.rpartition(":")[2].rpartition(".")[2] == name
        )


def counted(model: str | Path, target: str, shapes: Sequence[int] = ()) -> Counts:
    """Count what a build executes.

    Args:
        model: a file or a network of the zoo.
        target: what it is built for.
        shapes: sizes by which an operator is found again in the objects that hold it.

    Raises:
        subprocess.CalledProcessError: the build failed.
    """
    found = _in_process(model, target, ["--shapes", ",".join(map(str, shapes))] if shapes else [])
    names = {name: tuple(found[name]) for name in found if name != "calls"}
    return Counts(calls=found["calls"], **names)


def seconds(model: str | Path, target: str) -> float:
    """Return the processor time of a build with everything that it imports but TVM.

    Raises:
        subprocess.CalledProcessError: the build failed.
    """
    return float(_in_process(model, target, ["--seconds"]))


def _in_process(model: str | Path, target: str, options: Sequence[str]) -> Any:
    line = [sys.executable, "-m", "benchmarks.counting", str(model), target, *options]
    # Sets are iterated in an order that this seed decides.
    environment = {**os.environ, "PYTHONPATH": str(HERE), "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        line, cwd=HERE, env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(done.stdout)


def _module_of(code: CodeType) -> str | None:
    """Return the module of the product whose code this is."""
    path = Path(code.co_filename)
    if path.suffix != ".py" or not path.is_relative_to(HERE):  # templates are code, too
        return None
    parts = path.relative_to(HERE).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__") if parts[0] in PACKAGES else None


def _fields(value: object) -> Iterator[object]:
    """What an object has in its fields, and in the tuples, lists and mappings there."""
    pending = list(vars(value).values()) if hasattr(value, "__dict__") else []
    while pending:
        value = pending.pop()
        if isinstance(value, tuple | list):
            pending.extend(value)
        elif isinstance(value, Mapping):
            pending.extend(value.values())
        else:
            yield value


def _sizes(values: Iterable[object]) -> Iterator[int]:
    """Numbers, and sizes of arrays and tensors."""
    for value in values:
        if isinstance(value, int):
            yield value
        elif not _is_ours(value) and isinstance(shape := getattr(value, "shape", None), tuple):
            yield from shape


def _is_ours(value: object) -> bool:
    return type(value).__module__.split(".")[0] in PACKAGES


class _Holders:
    """Finds the classes of the product whose objects hold an operator, in functions' variables."""

    def __init__(self, sizes: frozenset[int]) -> None:
        self.sizes = sizes
        self.shapes: set[type] = set()
        self.carriers: set[type] = set()

    def __call__(self, frame: FrameType, event: str, result: object) -> None:
        if event != "return" or _module_of(frame.f_code) is None:
            return
        for value in (*frame.f_locals.values(), result):
            for part in value if isinstance(value, tuple | list) else (value,):
                if _is_ours(part) and not self._is_shape(part):
                    if any(_is_ours(field) and self._is_shape(field) for field in _fields(part)):
                        self.carriers.add(type(part))

    def _is_shape(self, value: object) -> bool:
        kind = type(value)
        if kind not in self.shapes and self.sizes <= set(_sizes(_fields(value))):
            self.shapes.add(kind)
        return kind in self.shapes


def _build(model: str, target: str) -> None:
    # Here, as everything that a build imports is counted.
    from htvm.build_options import BuildOptions
    from htvm.pipeline import compile_model

    compile_model(model, target, BuildOptions())


def _counts(model: str, target: str) -> dict[str, Any]:
    profile = cProfile.Profile(builtins=False)
    profile.runcall(_build, model, target)
    calls: Counter[str] = Counter()
    executed = set()
    for entry in profile.getstats():
        code = entry.code
        # Bodies of modules and classes are no functions.
        if isinstance(code, str) or not code.co_flags & inspect.CO_OPTIMIZED:
            continue
        module = _module_of(code)
        if module is None or code.co_name.startswith("<"):
            continue
        executed.add(module)
        calls[f"{module}:{code.co_qualname}"] += entry.callcount
    imported = [name for name in sys.modules if name.split(".")[0] in PACKAGES]
    return asdict(
        Counts(tuple(sorted(imported)), tuple(sorted(executed)), dict(sorted(calls.items())))
    )


@click.command(help=__doc__)
@click.argument("model")
@click.argument("target")
@click.option("--shapes", default="", help="Sizes of an operator, separated by commas.")
@click.option("--seconds", "timed", is_flag=True, help="Measure instead of counting.")
def main(model: str, target: str, shapes: str, timed: bool) -> None:
    """Build once in this process, and print what was counted."""
    if timed:
        import tvm.relax  # noqa: F401

        begin = time.process_time()
        _build(model, target)
        click.echo(json.dumps(time.process_time() - begin))
        return
    found = _counts(model, target)
    if shapes:
        holders = _Holders(frozenset(map(int, shapes.split(","))))
        sys.setprofile(holders)
        _build(model, target)
        sys.setprofile(None)
        for name, classes in (
            ("shapes", holders.shapes),
            ("carriers", holders.carriers - holders.shapes),
        ):
            found[name] = sorted(f"{kind.__module__}.{kind.__qualname__}" for kind in classes)
    click.echo(json.dumps(found))


if __name__ == "__main__":
    main()
