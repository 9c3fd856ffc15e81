"""`Op`: an operator of the integer form, all there is about it in one frozen class.

A class has the operator's fields, its one definition, the range of its results, and traits that
say how the rest of the house treats it: the kind of work (cost, code size), what it does with
scales (retargeting), with layout, and with padding.  It writes itself into a Relax module, and the
same object is read back from there (`patterns.reading`).  Nobody compares names of operators: they
ask the class.

To add an operator, write its class in a file below `patterns/ops` and a handler in a frontend that
returns it.  `patterns.ops.classes` finds the class by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, TypeAlias, TypeVar

import numpy as np

from byoc_dory.errors import IntegerFormError
from byoc_dory.work import Work
from patterns.fields import check_fields, key_of

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var

    from byoc_dory.layers import Layer, Layout

__all__ = ["INT8", "Op", "Range", "Scale", "TensorType", "Work", "operator", "union"]

Range: TypeAlias = tuple[int, int]
"""Inclusive (low, high) of the elements of a tensor."""

INT8: Range = (-128, 127)


def union(ranges: Sequence[Range]) -> Range:
    """The range that all of these lie in; all of int8 if there are none."""
    if not ranges:
        return INT8
    return min(low for low, _ in ranges), max(high for _, high in ranges)


class Scale(Enum):
    """What an operator does with the scale and zero point of what it reads."""

    FREE = "free"
    """It requantizes: the scale of its result can be chosen (retargeting does)."""
    PASSES = "passes"
    """The result has the scale and zero point of the inputs, which must be equal."""
    OWN = "own"
    """It computes in its own quantization, which stays as the source has it."""


@dataclass(frozen=True)
class TensorType:
    """Shape (batch included, in elements) and element type (numpy's name) of a tensor."""

    shape: tuple[int, ...]
    dtype: str = "int8"


@dataclass(frozen=True, eq=False)
class Op:
    """Base of all operators; subclasses are frozen dataclasses, marked with `operator`.

    Fields are numbers, strings, tuples of these, numpy arrays, and frozen dataclasses of
    `byoc_dory.layers` (requantizations, functions of rows).  Two operators are equal if they are
    of one class and all fields are, arrays element for element.

    Attributes:
        kind: what the operator is called in reports and messages, and in the module; unique.
        work: see `Work`.
        scale: see `Scale`.
        neutral: whether it neither knows nor changes the layout of its tensors.
    """

    kind: ClassVar[str] = ""
    work: ClassVar[Work] = Work.OTHER
    scale: ClassVar[Scale] = Scale.OWN
    neutral: ClassVar[bool] = False
    checked: ClassVar[type[Op] | None] = None
    """The class itself, once `operator` has checked it; a subclass must be checked again."""

    @property
    def stem(self) -> str:
        """What names of such operators begin with: ``conv2d`` for ``conv2d_0``."""
        return self.kind

    def write(self, bb: BlockBuilder, inputs: Sequence[Expr], name: str) -> Var:
        """Write the operator inside a dataflow block and return the variable of its result.

        Args:
            bb: where to write.
            inputs: the tensors it reads.
            name: of the operator, carried by every call it consists of.

        Raises:
            IntegerFormError: if the inputs do not fit the fields.
            UnsupportedError: if the result could not be computed exactly.
        """
        raise NotImplementedError

    def result_of(self, inputs: Sequence[TensorType]) -> TensorType:
        """The type of the result where the operator is applied to tensors of these types.

        Raises:
            IntegerFormError: if the tensors do not fit the fields.
            UnsupportedError: if the result could not be computed exactly.
        """
        raise NotImplementedError

    def range(self, inputs: Sequence[Range]) -> Range:
        """The range of the result, given those of the inputs: by default that of ``clip``."""
        clip = getattr(self, "clip", None)
        return (int(clip[0]), int(clip[1])) if clip is not None else INT8

    def layer(
        self, name: str, inputs: Sequence[tuple[str, TensorType]], output: TensorType
    ) -> Layer | None:
        """The layer that an accelerator may be offered; by default there is none.

        Args:
            name: of the operator.
            inputs: name and type of each tensor it reads.
            output: type of its result.
        """
        return None

    def elements_read(self, inputs: Sequence[TensorType], output: TensorType) -> int:
        """Elements read, each as often as it is read: by default every input once."""
        return sum(int(np.prod(tensor.shape)) for tensor in inputs)

    @property
    def zero_point(self) -> int | None:
        """Integer of the result that stands for 0.0, where the operator knows it."""
        return None

    @property
    def prescribed(self) -> Layout | None:
        """The layout that it prescribes to its tensors, if it does."""
        return None

    def in_channels_first(self) -> Op:
        """The same operator where its tensors turn out to be NCHW, though it was read as NHWC."""
        return self

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and key_of(self) == key_of(other)

    def __hash__(self) -> int:
        return hash(key_of(self))


AnyOp = TypeVar("AnyOp", bound=type[Op])


def operator(cls: AnyOp) -> AnyOp:
    """Check a class of operators when it is defined, and return it.

    Raises:
        IntegerFormError: if it is no frozen dataclass derived from `Op`, has no kind, or has a
            field that would not come back equal from a Relax module.
    """
    where = f"operator class '{cls.__name__}'"
    own = vars(cls).get("__dataclass_params__")
    frozen = own is not None and own.frozen
    if not issubclass(cls, Op) or not frozen or "__eq__" in vars(cls):
        raise IntegerFormError(
            "it is not a frozen dataclass derived from Op",
            where=where,
            hint="write @operator above @dataclass(frozen=True, eq=False)",
        )
    if not cls.kind:
        raise IntegerFormError("it has no kind", where=where, hint="give it a name: kind = ...")
    check_fields(cls, where)
    cls.checked = cls
    return cls
