"""`Op`: an operator of the integer form; one frozen class has everything about it.

A class has the operator's fields, its only definition (and the same in numpy, if retargeting
computes many of its results), the range of its results, and traits that tell the other stages how
to treat it: the kind of work (cost, code size), its effect on scales (retargeting), on layout, and
on padding.  It writes itself into a Relax module, and an equal object is read back from there
(`patterns.reading`).  No code compares operators' names; it uses these methods and traits instead.

To add an operator, write its class below `patterns/ops` and a handler in a frontend that
returns it.  `patterns.ops.classes` finds the class automatically.
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
from patterns.rows import RowWindow

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var

    from byoc_dory.layers import Array, Layer, Layout

__all__ = [
    "INT8", "Op", "Operands", "Range", "RowWindow", "Scale", "TensorType", "Work", "operator",
    "union",
]  # fmt: skip

Range: TypeAlias = tuple[int, int]
"""Inclusive (low, high) of the elements of a tensor."""

INT8: Range = (-128, 127)


def union(ranges: Sequence[Range]) -> Range:
    """Return the smallest range that contains all of these; all of int8 if there are none."""
    if not ranges:
        return INT8
    return min(low for low, _ in ranges), max(high for _, high in ranges)


class Scale(Enum):
    """How an operator treats the scale and zero point of its inputs."""

    FREE = "free"
    """It requantizes: the scale of its result can be chosen (by retargeting)."""
    PASSES = "passes"
    """The result has the scale and zero point of the inputs, which must be equal."""
    OWN = "own"
    """It computes in its own quantization, which stays that of the source."""


@dataclass(frozen=True)
class TensorType:
    """Shape (in elements, with the batch) and element type (numpy's name) of a tensor."""

    shape: tuple[int, ...]
    dtype: str = "int8"


Operands: TypeAlias = Sequence[tuple[str, TensorType]]
"""Name and type of each tensor that an operator reads."""


@dataclass(frozen=True, eq=False)
class Op:
    """Base of all operators; subclasses are frozen dataclasses, marked with `operator`.

    Fields are numbers, strings, tuples of these, numpy arrays, and frozen dataclasses of
    `byoc_dory.layers` (requantizations, functions of rows).  Two operators are equal if their class
    and all fields are; arrays are compared element by element.

    Attributes:
        kind: unique name of the operator in reports, messages and modules.
        work: kind of work on a host; see `Work`.
        scale: effect on scales; see `Scale`.
        neutral: whether its definition does not depend on the layout of its tensors.
    """

    kind: ClassVar[str] = ""
    work: ClassVar[Work] = Work.OTHER
    scale: ClassVar[Scale] = Scale.OWN
    neutral: ClassVar[bool] = False
    checked: ClassVar[type[Op] | None] = None
    """The class itself, set by `operator` after its checks; subclasses must be checked again."""

    @property
    def stem(self) -> str:
        """Beginning of such operators' names: ``conv2d`` for ``conv2d_0``."""
        return self.kind

    def write(self, bb: BlockBuilder, inputs: Sequence[Expr], name: str) -> Var:
        """Write the operator inside a dataflow block and return the variable of its result.

        Args:
            bb: builder to write with.
            inputs: the tensors it reads.
            name: name of the operator, carried by every call it consists of.

        Raises:
            IntegerFormError: the inputs do not fit the fields.
            UnsupportedError: the result could not be computed exactly.
        """
        raise NotImplementedError

    def result_of(self, inputs: Sequence[TensorType]) -> TensorType:
        """Return the type of the operator's result for inputs of these types.

        Raises:
            IntegerFormError: the tensors do not fit the fields.
            UnsupportedError: the result could not be computed exactly.
        """
        raise NotImplementedError

    def range(self, inputs: Sequence[Range]) -> Range:
        """The range of the result, given the ranges of the inputs: by default that of ``clip``."""
        clip = getattr(self, "clip", None)
        return (int(clip[0]), int(clip[1])) if clip is not None else INT8

    def compute(self, inputs: Sequence[Array]) -> Array:
        """Return the results for a batch of inputs, in numpy.

        Only operators that calibration computes for many inputs have such a definition.

        Args:
            inputs: ``[N, ...]`` each; maps are ``[N, y, x, C]``, whatever the operator's layout.
        """
        raise NotImplementedError

    def layer(self, name: str, inputs: Operands, output: TensorType) -> Layer | None:
        """Return the layer to offer to accelerators; ``None`` by default.

        Args:
            name: name of the operator.
            inputs: the tensors it reads.
            output: type of its result.
        """
        return None

    def kept_layer(self, name: str, inputs: Operands, output: TensorType) -> Layer | None:
        """Return the layer to offer to accelerators that compute in the source's numbers.

        Only for operators without a `layer`, which is offered to all accelerators; ``None`` by
        default.

        Args:
            name: name of the operator.
            inputs: the tensors it reads.
            output: type of its result.
        """
        return None

    @property
    def special(self) -> str:
        """What may keep it from having a layer, behind its kind in verdicts; empty by default."""
        return ""

    def elements_read(self, inputs: Sequence[TensorType], output: TensorType) -> int:
        """The number of elements read, counting repeated reads: by default each input once."""
        return sum(int(np.prod(tensor.shape)) for tensor in inputs)

    def row_windows(
        self, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[RowWindow, ...] | None:
        """The rows of each input that a row of the result is computed from.

        By default ``None``: it reads its inputs as a whole.

        Args:
            inputs: types of the tensors it reads.
            output: type of its result.
        """
        return None

    def of_sums(self, inputs: Sequence[TensorType], output: TensorType) -> Op | None:
        """The operator that computes the result from int32 sums of each channel over a whole map.

        Args:
            inputs, output: as for `row_windows`.

        Returns:
            ``None`` if the result is no function of these sums, or if they may not fit int32.
        """
        return None

    @property
    def unpadded(self) -> Op:
        """The same for inputs that come with the padding of `row_windows`; itself without any."""
        return self

    @property
    def zero_point(self) -> int | None:
        """Integer of the result that represents 0.0; ``None`` if the operator does not know it."""
        return None

    @property
    def prescribed(self) -> Layout | None:
        """The layout that it prescribes for its tensors; ``None`` if it prescribes none."""
        return None

    def in_channels_first(self) -> Op:
        """Return the operator for NCHW tensors, if it was read as NHWC by mistake."""
        return self

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and key_of(self) == key_of(other)

    def __hash__(self) -> int:
        return hash(key_of(self))


AnyOp = TypeVar("AnyOp", bound=type[Op])


def _is_abstract(member: object) -> bool:
    return getattr(member, "__isabstractmethod__", False)


def operator(cls: AnyOp) -> AnyOp:
    """Check a class of operators when it is defined, and return it.

    Raises:
        IntegerFormError: it is not a frozen dataclass derived from `Op`, has no kind, lacks a
            method, or has a field that would not survive the round trip through a Relax module.
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
    missing = [name for name in dir(cls) if _is_abstract(getattr(cls, name, None))]
    if missing:
        raise IntegerFormError(
            f"it does not define {', '.join(missing)}",
            where=where,
            hint="without them it cannot be written into a module and read again",
        )
    cls.checked = cls
    return cls
