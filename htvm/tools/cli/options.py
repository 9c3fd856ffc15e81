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
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

import click

from byoc_dory.errors import TargetError
from byoc_dory.options import TilingOptions
from byoc_dory.soc.parameters import parse_size
from htvm.errors import InputError
from htvm.integer_io import IO_KINDS
from htvm.tools.cli.places import PATH
from htvm.tools.cli.terminal import log_to_stderr

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from htvm.frontend.limits import Limits
    from htvm.tools.cli.arguments import Reading
    from htvm.tools.report.difference import Condition

    _Text = click.ParamType[str]
    _Number = click.ParamType[int]
else:
    # Older ones take no argument.
    _Text = _Number = click.ParamType

Command = TypeVar("Command", bound=Callable[..., None])

EXPORT_FOLDER = "Folder to write: a new or empty one, or an earlier export, which is replaced."


def examples(*lines: str) -> str:
    """Return the epilog of a verb's help: example command lines."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def l2(command: Command) -> Command:
    """Add ``--l2`` (as ``l2_bytes``)."""
    return click.option(
        "--l2", "l2_bytes", type=Bytes(),
        help="Bytes of L2, where that is adjustable.",
    )(command)  # fmt: skip


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

        found: dict[str, Any] = {}
        for name, value in map(getattr(arguments, reader), given):
            if found.setdefault(name, value) != value:
                raise InputError(f"two {what} for input '{name}'", where=option.opts[0])
        return found

    return read


def _limits(
    _context: click.Context, _option: click.Parameter, given: tuple[str, ...]
) -> Limits | None:
    from htvm.frontend.limits import Limits
    from htvm.tools.cli.limits import read_limits

    return read_limits(Limits, given, "--limit") if given else None


limits = click.option(
    "--limit", "limits", multiple=True, metavar="NAME=VALUE", callback=_limits,
    help="What reading a file may take, for one that you trust and that is refused for it, e.g. "
    "folded_elements=64M; may be repeated.",
)  # fmt: skip


def reading(command: Command) -> Command:
    """Add ``--input-shape``, ``--input-type`` and ``--limit`` (as ``reading``, a `Reading`)."""

    @click.option(
        "--input-shape", "input_shapes", multiple=True, metavar="NAME=SIZExSIZE",
        callback=_of_inputs("read_shape", "shapes"),
        help="Shape of an input whose sizes an ONNX file leaves open, e.g. image=1x3x224x224; may "
        "be repeated.  By default that of the array in inputs.npz beside the file.",
    )  # fmt: skip
    @click.option(
        "--input-type", "input_types", multiple=True, metavar="NAME=TYPE",
        callback=_of_inputs("read_type", "types"),
        help="Integers that an input holds which an ONNX file declares as real, e.g. image=uint8; "
        "may be repeated.",
    )  # fmt: skip
    @limits
    @functools.wraps(command)
    def wrapped(
        input_shapes: dict[str, tuple[int, ...]],
        input_types: dict[str, str],
        limits: Limits | None,
        **others: Any,
    ) -> None:
        from htvm.tools.cli.arguments import Reading

        command(reading=Reading(input_shapes, input_types, limits), **others)

    return wrapped  # type: ignore[return-value]


class Bytes(_Number):
    """A number of bytes: ``65536``, ``64k`` or ``64KiB``."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number of bytes, at least 1."""
        found = parse_size(str(value))
        if not found or found < 1:
            self.fail(f"{value!r} is no size; give bytes, or e.g. 64k", param, ctx)
        return found


def fail_if(command: Command) -> Command:
    """Add ``--fail-if`` (as ``conditions``) to a verb with one report."""
    return _fail_if(earlier=False)(command)


def fail_if_changed(command: Command) -> Command:
    """Add ``--fail-if`` (as ``conditions``) to a verb with an earlier report."""
    return _fail_if(earlier=True)(command)


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


def tiling(command: Command) -> Command:
    """Add ``--objective``, ``--l1``, ``--tiling`` and ``--schedule`` (as ``tiling``, options)."""

    @schedule
    @click.option("--objective", help="What tiles are chosen for, e.g. latency (the default).")
    @click.option("--l1", "l1_budget", type=Bytes(), help="Bytes of L1 that layers may use.")
    @click.option(
        "--tiling",
        "tiling_file",
        type=PATH,
        help="All of these, layer by layer: a file that `htvm explore --out` wrote.",
    )
    @functools.wraps(command)
    def wrapped(
        schedule: Any,
        objective: str | None,
        l1_budget: int | None,
        tiling_file: Path | None,
        **others: Any,
    ) -> None:
        given = {"schedule": schedule, "objective": objective, "l1_budget": l1_budget}
        command(tiling=_tiling(given, tiling_file), **others)

    return wrapped  # type: ignore[return-value]


def _tiling(given: dict[str, Any], path: Path | None) -> TilingOptions:
    """Return the options given one by one, on top of those in a file.

    Raises:
        InputError: the file cannot be read, or contradicts an option.
    """
    from htvm.tiling_file import read_tiling

    asked = {name: value for name, value in given.items() if value is not None}
    if path is None:
        return replace(TilingOptions(), **asked)
    found = read_tiling(path)
    for name, value in asked.items():
        if getattr(found, name) not in (None, value):
            option = "--l1" if name == "l1_budget" else f"--{name}"
            raise InputError(
                f"{option} {value}, and {path} says {getattr(found, name)}",
                where="--tiling",
                hint="leave out one of the two, or change the file",
            )
    return replace(found, **asked)


def interface(command: Command) -> Command:
    """Add ``--io`` (as ``io``) and ``--data`` (as ``data``, a path), both for `open_model`."""
    command = click.option(
        "--data", type=PATH, metavar="FILE",
        help="An .npz or .npy file with typical inputs, [N, ...], in the model's own numbers: what "
        "retargeting is fitted to, instead of noise.",
    )(command)  # fmt: skip
    return click.option(
        "--io", type=click.Choice(IO_KINDS), default=IO_KINDS[0], show_default=True,
        help="Interface: the model's own, or int8, without the conversions at inputs and outputs; "
        "the generated header has their scale and zero point.",
    )(command)  # fmt: skip


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
        _refuse_unused(click.get_current_context())
        command(**options)

    return wrapped  # type: ignore[return-value]


_OF_ACCELERATORS = {
    "policy": "--policy", "schedule": "--schedule", "objective": "--objective",
    "l1_budget": "--l1", "l1_budgets": "--l1", "tiling_file": "--tiling",
}  # fmt: skip
"""Options that say something about accelerators only, by the names of their parameters."""


def _refuse_unused(context: click.Context) -> None:
    """Refuse options that say nothing about the target.

    Raises:
        TargetError: an option for accelerators is given, and the target has none.
    """
    from byoc_dory.soc.registry import resolve

    name = context.params.get("target")
    source = click.core.ParameterSource.COMMANDLINE
    given = [
        option
        for parameter, option in _OF_ACCELERATORS.items()
        if parameter in context.params and context.get_parameter_source(parameter) == source
    ]
    if name is None or not given or resolve(name).accelerators:
        return
    raise TargetError(
        f"{given[0]} says nothing about {name}, which has no accelerators",
        where=given[0],
        hint="leave it out, or give a target with accelerators",
    )


def _known_target(context: click.Context, option: click.Parameter, name: str) -> str:
    """Return the full name of a target, or that of the board if one is given.

    Raises:
        TargetError: it is not known, or a board of another target is given in addition.
    """
    from byoc_dory.soc.registry import resolve

    board = context.meta.get(_BOARD)
    source = context.get_parameter_source(option.name or "")
    if board is None:
        return resolve(name).name
    if source == click.core.ParameterSource.COMMANDLINE and resolve(name).name != board:
        raise TargetError(
            f"the board {board} and the target {name} are two answers to one question",
            hint=f"leave out --target; the board's is {board}",
        )
    return str(board)


_BOARD = "htvm.board"


def _known_board(context: click.Context, _option: click.Parameter, name: str | None) -> None:
    from byoc_dory.soc.registry import board_target, resolve

    if name is not None:
        context.meta[_BOARD] = resolve(board_target(name)).name


def complete_board(_context: click.Context, _option: click.Parameter, begun: str) -> list[str]:
    """Complete names of boards, for the shell."""
    from byoc_dory.soc.board import boards

    return [name for name in boards() if name.startswith(begun)]


def complete_target(_context: click.Context, _option: click.Parameter, begun: str) -> list[str]:
    """Complete names of targets, and of parameters after ``NAME:``, for the shell."""
    from byoc_dory.soc.registry import resolve, targets

    base, colon, given = begun.partition(":")
    if not colon or base not in targets():
        return [name for name in targets() if name.startswith(begun)]
    done, _, last = given.rpartition(",")
    head = f"{base}:{done}," if done else f"{base}:"
    names = (entry.name for entry in resolve(base).soc.parameters)
    return [f"{head}{name}=" for name in names if name.startswith(last)]


class _ModelName(_Text):
    """A file or ``zoo:NAME``; this type only serves the shell's completion."""

    name = "model"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete names of the zoo after ``zoo:``, and files otherwise."""
        from click.shell_completion import CompletionItem

        if incomplete and "zoo:".startswith(incomplete[:4]):
            from htvm.tools.zoo import TRAINED, names

            known = [f"zoo:{name}" for name in (*names(), *TRAINED)]
            return [CompletionItem(name) for name in known if name.startswith(incomplete)]
        return [CompletionItem(incomplete, type="file")]


model = click.argument("model", type=_ModelName())


def targeted(what: str) -> Callable[[Command], Command]:
    """Return a decorator that adds ``--target`` (as ``target``), and ``--board`` in its place.

    Args:
        what: the help of ``--target``.
    """

    def decorate(command: Command) -> Command:
        command = click.option(
            "--board", metavar="NAME", is_eager=True, expose_value=False, callback=_known_board,
            shell_complete=complete_board,
            help="A board, or its file, instead of a target: its core, flash and RAM; `htvm "
            "boards` lists them.",
        )(command)  # fmt: skip
        return click.option(
            "--target", "-t", default="diana", show_default=True, callback=_known_target,
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


def network(command: Command) -> Command:
    """Add `model`, `reading` and `interface` (as ``network``, a `Network`, with `labels`)."""

    @functools.wraps(command)
    def wrapped(
        model: str,
        reading: Reading,
        io: str,
        data: Path | None,
        labels: Path | None = None,
        **others: Any,
    ) -> None:
        from htvm.tools.cli.arguments import Network

        command(network=Network(model, reading, io, data, labels), **others)

    return model(reading(interface(wrapped)))  # type: ignore[return-value]


class Placed(TypedDict):
    """Options of a build: where layers run, and how."""

    policy: str | None
    tiling: TilingOptions
    rewrites: Literal["on", "off"]


def placed(command: Command) -> Command:
    """Add `target`, and `policy`, `tiling` and `rewrites` (as ``placed``, a `Placed`)."""

    @functools.wraps(command)
    def wrapped(policy: str | None, tiling: TilingOptions, rewrites: Any, **others: Any) -> None:
        command(placed=Placed(policy=policy, tiling=tiling, rewrites=rewrites), **others)

    return target(policy(tiling(rewrites(wrapped))))  # type: ignore[return-value]


platform = click.option(
    "--platform",
    type=click.Choice(["rv32", "arm", "qemu", "host"]),
    help="Firmware on the instruction-set simulator (cycles) or on an emulator of Arm's cores "
    "(instructions), or the same C natively (neither); the one of the target's core by default.",
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
