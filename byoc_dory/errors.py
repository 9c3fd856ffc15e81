"""The error types of the whole project.

Every user error, and every failure of the environment, ends in one of these.  Each message says
*what* is wrong, *where*, and *what to do about it*.  The types are defined on the lowest level so
that every package can raise them; ``htvm.errors`` re-exports them.
"""

from __future__ import annotations

import difflib
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from byoc_dory.plain import plain


def nearest(given: object, known: Iterable[str]) -> str:
    """Return "did you mean NAME? " with the most similar name; empty if none is similar."""
    found = difflib.get_close_matches(str(given), list(known), n=1, cutoff=0.6)
    return f"did you mean {found[0]}? " if found else ""


def first_line(error: Exception, longest: int = 200) -> str:
    """Return the first line of what another library's error says."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)[:longest]


class HtvmError(Exception):
    """Base of all errors of this project.

    Args:
        what: the problem, with the offending value.
        where: the file, layer, tensor or address concerned; empty if there is none.
        hint: how to fix it; empty if nothing sensible can be said.

    ``str(error)`` is one message of the non-empty parts, separated by ``"; "``, and in one line.
    """

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        return plain("; ".join(part for part in (self.what, self.where, self.hint) if part))


class ModelError(HtvmError):
    """The file or module is not a model, or is corrupt."""


class UnsupportedError(HtvmError):
    """The model is sound, but uses an unsupported operator or quantization."""


class InputError(HtvmError):
    """An input of a run has the wrong name, shape or dtype."""


class TargetError(HtvmError):
    """The target is unknown."""


class CapacityError(HtvmError):
    """A memory is too small.

    Args:
        what, where, hint: as for all errors.
        limit: size of the memory in bytes.
        demand: bytes that would be needed for the whole.
        smallest: bytes that the smallest tile needs, if less than the whole would do.
    """

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        hint: str = "",
        limit: int | None = None,
        demand: int | None = None,
        smallest: int | None = None,
    ) -> None:
        super().__init__(what, where=where, hint=hint)
        self.limit = limit
        self.demand = demand
        self.smallest = smallest


class TilingError(CapacityError):
    """No tile of the layer fits L1; names demand, limit, and options that would help."""


class TileProgramError(HtvmError):
    """An accelerator's tile program contradicts itself: a defect of the accelerator's package."""


class DefectError(HtvmError):
    """A build breaks a promise of this project: a defect of ours, not of the model."""


class InternalError(DefectError):
    """An error that nobody foresaw, which is its cause: a defect of ours, to be reported."""


class PolicyError(HtvmError):
    """A policy names an unknown layer or accelerator, or one that refuses the layer."""


class L2OverflowError(CapacityError):
    """Code, constants, arena and stack exceed L2, or weights their memory; names the demand."""


class LimitError(HtvmError):
    """A process came to a limit of its own: of processor time, of memory, or of time.

    Args:
        what, where, hint: as for all errors.
        limit: name of the limit: a field of `htvm.Confinement`; empty if unknown.
    """

    def __init__(self, what: str, *, where: str = "", hint: str = "", limit: str = "") -> None:
        super().__init__(what, where=where, hint=hint)
        self.limit = limit


class ExportError(HtvmError):
    """The project folder cannot be written."""


class ToolchainError(HtvmError):
    """There is no C compiler, or it failed."""


class DependencyError(HtvmError):
    """An optional package is not installed; the hint names the extra that installs it."""


class SimulationError(HtvmError):
    """The simulated core trapped, or a device model complained."""


class IntegerFormError(HtvmError):
    """A module is not in the integer form (raised by the checker)."""


@contextmanager
def named(accelerator: str, soc: str) -> Iterator[None]:
    """Name the accelerator in errors about its description.

    Raises:
        TargetError: one was raised inside, or numbers cannot be computed with, such as a width of 0
            that something is divided by; then the line of the method is named, too.
    """
    name = f"accelerator '{accelerator}' of SoC {soc}"
    try:
        yield
    except TargetError as error:
        if not error.where.startswith(name):
            error.where = f"{name}, {error.where}" if error.where else name
        raise
    except ArithmeticError as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        raise TargetError(
            f"its numbers cannot be computed with: {error}",
            where=f"{name}, {at.filename}, line {at.lineno}",
            hint="correct the description, or the method that this line is part of",
        ) from error
