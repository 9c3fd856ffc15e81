"""`print`: the value after a stage of a build, as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from byoc_dory.errors import TargetError, nearest
from byoc_dory.plain import plain
from htvm.build_options import BuildOptions
from htvm.compiled import Compiled
from htvm.opening import PRINTED
from htvm.public import public
from htvm.tools.printing.graphs import graph_lines
from htvm.tools.printing.placements import dispatch_lines, placement_lines
from htvm.tools.printing.programs import (
    assembly_lines,
    generated_lines,
    lowered_lines,
    region_lines,
)

if TYPE_CHECKING:
    from tvm.ir import IRModule

    from byoc_dory.soc.base import Target
    from htvm.model import Model
    from htvm.progress import Progress


class Printed(str):
    """The text of a stage, which consoles and notebooks show as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _import_lines(compiled: Compiled) -> Iterator[str]:
    return graph_lines(compiled.source)


def _retarget_lines(compiled: Compiled) -> Iterator[str]:
    retargeted, rewritten = compiled.retargeted, compiled.rewritten
    yield from str(retargeted.report).splitlines()
    for layer, instead in rewritten.items():
        yield f"{layer} rewritten: {instead}"
    for layer in compiled.planned.rewrites:
        if layer not in rewritten:
            yield f"{layer} not rewritten after all"
    yield from graph_lines(retargeted.model)


_LINES: Mapping[str, Callable[[Compiled], Iterator[str]]] = {
    "import": _import_lines,
    "place": placement_lines,
    "retarget": _retarget_lines,
    "dispatch": dispatch_lines,
    "partition": region_lines,
    "generate": generated_lines,
    "lower": lowered_lines,
    "assemble": assembly_lines,
}
STAGES = tuple(_LINES)
"""The stages of a build before the C compiler, in order."""


@public
def print(
    model: Model | IRModule | str | Path,
    target: str | Target = "diana",
    after: str = "dispatch",
    *,
    options: BuildOptions | None = None,
    progress: Progress | None = None,
) -> Printed:
    """Return the value after a stage of a build as text, to be read, not to be read in.

    Args:
        model: what `htvm.build` takes.
        target: what it is built for; ``"import"`` is the same for all.
        after: the stage: ``"import"``, ``"place"``, ``"retarget"``, ``"dispatch"``,
            ``"partition"``, ``"generate"``, ``"lower"`` or ``"assemble"``.
        options: options of the build.
        progress: receives the stages of the build.

    Raises:
        TargetError: there is no such stage or target.
        HtvmError: what `htvm.build` raises of a model that cannot be compiled.
    """
    *_, last = printed_stages(model, target, after, options=options, progress=progress)
    return last


def printed_stages(
    model: Model | IRModule | str | Path,
    target: str | Target = "diana",
    after: str = STAGES[-1],
    *,
    options: BuildOptions | None = None,
    progress: Progress | None = None,
) -> Iterator[Printed]:
    """Yield the value of each stage up to one as text; arguments and errors as of `print`.

    A stage that fails raises its error after the texts of those before it.
    """
    if after not in STAGES:
        raise TargetError(
            f"there is no stage {after!r}",
            where="option 'after'",
            hint=f"{nearest(after, STAGES)}one of {', '.join(STAGES)}",
        )
    compiled = Compiled(model, target, options or BuildOptions(), progress=progress)
    for stage, lines in _LINES.items():
        about = f" for {compiled.target.name}" if stage != "import" else ""
        text = [*lines(compiled)]
        head = f"{PRINTED}{stage} of {compiled.source.name}{about}"
        yield Printed("".join(f"{plain(line)}\n" for line in (head, "", *text)))
        if stage == after:
            return
