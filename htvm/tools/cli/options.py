"""Arguments and options shared by verbs, each a decorator.

A verb is a file of `htvm.tools.cli.verbs` with a click command called ``command``::

    @click.command()
    @options.model
    @options.target
    @options.common
    def command(model: str, target: str, as_json: bool) -> None:
        ...

Values that can be checked on their own are checked here, before opening a model, which takes
longer.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

import click

from byoc_dory.options import TilingOptions
from htvm.errors import InputError
from htvm.integer_io import IO_KINDS
from htvm.tools.cli.output import PATH
from htvm.tools.cli.terminal import log_to_stderr
from htvm.tools.cli.words import (
    Bytes,
    Memory,
    ModelName,
    complete_board,
    complete_target,
    known_board,
    known_target,
    refuse_unused,
)

if TYPE_CHECKING:
    from htvm.frontend.limits import Limits
    from htvm.tools.cli.arguments import Network, Reading
    from htvm.tools.report.difference import Condition

Command = TypeVar("Command", bound=Callable[..., None])

EXPORT_FOLDER = "Folder to write: a new or empty one, or an earlier export, which is replaced."


def examples(*lines: str) -> str:
    """Return the epilog of a verb's help: example command lines."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def _together(
    name: str, make: Callable[..., Any], *options: Callable[[Any], Any]
) -> Callable[[Command], Command]:
    """Return a decorator that adds options, and hands a verb what is made of their values.

    Args:
        name: how the verb's parameter is called.
        make: makes its value; its parameters are annotated, and are options that are not passed on.
        options: decorators that add options, in the order of the help.
    """
    taken = inspect.get_annotations(make)

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def wrapped(**given: Any) -> None:
            own = {each: given.pop(each) for each in taken if each in given}
            command(**{name: make(**own)}, **given)

        added: Any = wrapped
        for option in reversed(options):
            added = option(added)
        found: Command = added
        return found

    return decorate


def out(
    what: str, callback: Callable[..., Any] | None = None, name: str = "out", **more: Any
) -> Callable[[Command], Command]:
    """Return a decorator that adds ``--out``, a file or folder to write.

    Args:
        what: the help.
        callback: checks what is given.
        name: how the verb's parameter is called.
        more: as for `click.option`.
    """
    return click.option("--out", "-o", name, type=PATH, callback=callback, help=what, **more)


def _of_inputs(reader: str, what: str) -> Callable[..., dict[str, Any]]:
    """Return a callback for an option that says something of inputs, by name, each once.

    Args:
        reader: function of `htvm.tools.cli.arguments` that reads the option's texts.
        what: what it says, for messages.
    """

    def read(
        _context: click.Context, option: click.Parameter, given: tuple[str, ...]
    ) -> dict[str, Any]:
        from htvm.tools.cli import arguments

        values: dict[str, Any] = {}
        for name, value in map(getattr(arguments, reader), given):
            if values.setdefault(name, value) != value:
                raise InputError(f"two {what} for input '{name}'", where=option.opts[0])
        return values

    return read


def _limits(
    _context: click.Context, _option: click.Parameter, given: tuple[str, ...]
) -> Limits | None:
    from htvm.frontend.limits import Limits
    from htvm.tools.cli.arguments import read_limits

    return read_limits(Limits, given, "--limit") if given else None


limits = click.option(
    "--limit", "limits", multiple=True, metavar="NAME=VALUE", callback=_limits,
    help="What reading a file may take, for one that you trust and that is refused for it, e.g. "
    "folded_elements=64M; may be repeated.",
)  # fmt: skip


def _reading(
    input_shapes: dict[str, tuple[int, ...]], input_types: dict[str, str], limits: Limits | None
) -> Reading:
    from htvm.tools.cli.arguments import Reading

    return Reading(input_shapes, input_types, limits)


reading = _together(
    "reading",
    _reading,
    click.option(
        "--input-shape", "input_shapes", multiple=True, metavar="NAME=SIZExSIZE",
        callback=_of_inputs("read_shape", "shapes"),
        help="Shape of an input whose sizes an ONNX file leaves open, e.g. image=1x3x224x224; may "
        "be repeated.  By default that of the array in inputs.npz beside the file.",
    ),
    click.option(
        "--input-type", "input_types", multiple=True, metavar="NAME=TYPE",
        callback=_of_inputs("read_type", "types"),
        help="Integers that an input holds which an ONNX file declares as real, e.g. image=uint8; "
        "may be repeated.",
    ),
    limits,
)  # fmt: skip


def _fail_if(*, earlier: bool) -> Callable[[Command], Command]:
    def conditions(
        _context: click.Context, _option: click.Parameter, given: tuple[str, ...]
    ) -> tuple[Condition, ...]:
        from htvm.tools.report.difference import no_earlier_report, read_condition

        found = tuple(map(read_condition, given))
        for each in found:
            if each.relative and not earlier:  # before anything is built
                raise no_earlier_report(each)
        return found

    return click.option(
        "--fail-if", "conditions", multiple=True, metavar="CONDITION", callback=conditions,
        help="Exit code 1 if this holds, e.g. 'cycles > 200000' or 'memory_bytes > 65536'; may be "
        "repeated.",
    )  # fmt: skip


fail_if = _fail_if(earlier=False)
fail_if_changed = _fail_if(earlier=True)  # of a verb with an earlier report


def _tiling(
    schedule: Any, objective: str | None, l1_budget: int | None, tiling_file: Path | None
) -> TilingOptions:
    """Return the options given one by one, on top of those in a file.

    Raises:
        InputError: the file cannot be read, or contradicts an option.
    """
    from htvm.tiling_file import read_tiling

    given = {"schedule": schedule, "objective": objective, "l1_budget": l1_budget}
    requested: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if tiling_file is None:
        return replace(TilingOptions(), **requested)
    found = read_tiling(tiling_file)
    for name, value in requested.items():
        if getattr(found, name) not in (None, value):
            option = "--l1" if name == "l1_budget" else f"--{name}"
            raise InputError(
                f"{option} {value}, and {tiling_file} says {getattr(found, name)}",
                where="--tiling",
                hint="leave out one of the two, or change the file",
            )
    return replace(found, **requested)


io = click.option(
    "--io", type=click.Choice(IO_KINDS), default=IO_KINDS[0], show_default=True,
    help="Interface: the model's own, or int8, without the conversions at inputs and outputs; "
    "the generated header has their scale and zero point.",
)  # fmt: skip
data = click.option(
    "--data", type=PATH, metavar="FILE",
    help="An .npz or .npy file with typical inputs, [N, ...], in the model's own numbers: what "
    "retargeting is fitted to, instead of noise.",
)  # fmt: skip
labels = click.option(
    "--labels", type=PATH, metavar="FILE",
    help="An .npz or .npy file with N integers, the class of each input in --data: the accuracy of "
    "the source and of the build is measured on them.",
)  # fmt: skip


def common(command: Command) -> Command:
    """Add ``--json`` (as ``as_json``) and ``-v``, which every verb takes."""

    @click.option(
        "-v",
        "--verbose",
        count=True,
        help="Say what is done; -vv says everything; defects show where they are.",
    )
    @click.option(
        "--json", "as_json", is_flag=True, help="Print JSON with a schema version, for programs."
    )
    @functools.wraps(command)
    def wrapped(verbose: int, **options: Any) -> None:
        log_to_stderr(verbose)
        refuse_unused(click.get_current_context())
        command(**options)

    return wrapped  # type: ignore[return-value]


model = click.argument("model", type=ModelName())


def targeted(what: str) -> Callable[[Command], Command]:
    """Return a decorator that adds ``--target`` (as ``target``), and ``--board`` in its place.

    Args:
        what: the help of ``--target``.
    """

    def decorate(command: Command) -> Command:
        command = click.option(
            "--board", metavar="NAME", is_eager=True, expose_value=False, callback=known_board,
            shell_complete=complete_board,
            help="A board, or its file, instead of a target: its core, flash and RAM; `htvm "
            "boards` lists them.",
        )(command)  # fmt: skip
        return click.option(
            "--target", "-t", default="diana", show_default=True, callback=known_target,
            shell_complete=complete_target, help=what,
        )(command)  # fmt: skip

    return decorate


target = targeted("What to build for; `htvm targets` lists them.")
policy = click.option(
    "--policy",
    type=click.Choice(["bitwidth", "latency", "mixed"]),
    help="Who runs what several cores could run: by bits of the weights, by estimated cycles, or "
    "by the published rule; the target's own by default.",
)
schedule = click.option(
    "--schedule",
    type=click.Choice(["published", "decoupled", "overlapped"]),
    help="Layer by layer as published; transfers beside the cores, each layer tiled alone; or "
    "tiles and memory chosen together (the default).",
)
rewrites = click.option(
    "--rewrites",
    type=click.Choice(["on", "off"]),
    default="on",
    show_default=True,
    help="Layers that accelerators refuse as other operators with the same results, where that is "
    "quicker.",
)


memory = click.option(
    "--memory",
    type=Memory(),
    help="For CPU targets: bytes of the arena at most, or 'least': operators row by row where that "
    "is needed.",
)
handed_over = click.option(
    "--input-as",
    "input",
    type=click.Choice(["kept", "overwritten", "streamed"]),
    default="kept",
    show_default=True,
    help="Where inputs are: the caller's, in the arena, where a run overwrites them, or (for CPU "
    "targets) handed over row by row.",
)
l2 = click.option("--l2", "l2_bytes", type=Bytes(), help="Bytes of L2, where that is adjustable.")
tiling = _together(
    "tiling",
    _tiling,
    schedule,
    click.option("--objective", help="What tiles are chosen for, e.g. latency (the default)."),
    click.option("--l1", "l1_budget", type=Bytes(), help="Bytes of L1 that layers may use."),
    click.option(
        "--tiling", "tiling_file", type=PATH,
        help="All of these, layer by layer: a file that `htvm explore --out` wrote.",
    ),
)  # fmt: skip


def _network(
    model: str, reading: Reading, io: str, data: Path | None, labels: Path | None = None
) -> Network:
    from htvm.tools.cli.arguments import Network

    return Network(model, reading, io, data, labels)


network = _together("network", _network, model, reading, io, data)
"""Model, how it is read, and its interface, as a `Network`, with `labels` if the verb has them."""


class Placed(TypedDict):
    """Options of a build: where layers run, and how."""

    policy: str | None
    tiling: TilingOptions
    rewrites: Literal["on", "off"]


class Build(Placed, total=False):
    """The same, with those of these options that the verb has."""

    platform: Literal["rv32", "arm", "qemu", "host"] | None
    l2_bytes: int | None
    memory: int | Literal["least"] | None
    input: Literal["kept", "overwritten", "streamed"]
    cc: str | None
    assembly: Literal["ahead", "late"] | None


placed = _together("placed", Placed, target, policy, tiling, rewrites)
"""Target, and where layers run, as a `Placed`."""
build = _together("build", Build, target, policy, tiling, rewrites, memory, handed_over)
"""Target, and how it is built for, as a `Build`."""

platform = click.option(
    "--platform",
    type=click.Choice(["rv32", "arm", "qemu", "host"]),
    help="Firmware on the instruction-set simulator (cycles) or on an emulator (instructions), or "
    "the same C natively (neither); the one of the target's core by default.",
)
cc = click.option(
    "--cc",
    metavar="COMPILER",
    help="A GCC for the core, by its name or path, instead of ziglang's clang: what it makes is "
    "measured.",
)
all_tables = click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Print all tables (layers, causes, memories, accuracy), as wide as the terminal; else the "
    "first screen.",
)
wide = click.option(
    "--wide",
    is_flag=True,
    help="Print all tables and columns, in lines as long as they need; else what fits the "
    "terminal.",
)
given_input = click.option(
    "--input",
    "-i",
    "given",
    default="random",
    show_default=True,
    help="An .npz or .npy file of integers as the model takes them, or random:SEED.",
)
