"""Reading one operator of a file: its tensors and options, checked, and its input activations.

A handler is given an `OperatorReader` and returns the operators that compute its outputs.  The
first damaged part raises `ModelError`, the first unsupported one `UnsupportedError`; both name
operator and tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from byoc_dory.errors import HtvmError, IntegerFormError, ModelError, UnsupportedError
from byoc_dory.layers import Array
from htvm.frontend.limits import Budget
from htvm.frontend.operators import Activation, Applied, Pair, Quantization
from htvm.frontend.scales import bound
from htvm.frontend.tflite.file import TfliteOperator, TfliteTensor
from htvm.frontend.tflite.flatbuffer import FlatTable
from htvm.frontend.tflite.schema import OPTIONS
from patterns.op import INT8, Op

INT16 = (-(2**15), 2**15 - 1)
SAME, VALID = 0, 1
FULL_INT8 = "quantize the model fully to int8, activations and weights"

_BOUNDS = {0: (-math.inf, math.inf), 1: (0.0, math.inf), 2: (-1.0, 1.0), 3: (0.0, 6.0)}
_LARGEST = 1 << 12  # of kernels and strides


class OperatorReader:
    """One operator of a file, and helpers to read it.

    Args:
        operator: the operator.
        values: activations computed so far, by tensor index.
        budget: counts what is made of the file's constants; those of the operator here.
        dtype: type of the activations, int8 or int16.

    Raises:
        UnsupportedError: the constants are beyond the limits.
    """

    def __init__(
        self,
        operator: TfliteOperator,
        values: Mapping[int, Activation],
        budget: Budget,
        dtype: str = "int8",
    ) -> None:
        for tensor in operator.inputs:
            if tensor is not None and tensor.data is not None:
                budget.spend("folded_elements", tensor.data.size, operator.place)
        self.operator = operator
        self.budget = budget
        self.dtype = dtype
        self.looked: set[int] = set()
        """Numbers of the inputs that have been looked at."""
        self._values = values

    @property
    def where(self) -> str:
        """Description of the operator, for messages."""
        return self.operator.place

    # ------------------------------------------------------------------------ errors

    def corrupt(self, what: str) -> HtvmError:
        """Return an error about a contradiction."""
        return ModelError(
            f"corrupt model: {what}",
            where=self.where,
            hint="the file is damaged; fetch or export it again",
        )

    def unsupported(self, what: str, hint: str = "") -> HtvmError:
        """Return an error about an unsupported feature."""
        return UnsupportedError(what, where=self.where, hint=hint)

    # ------------------------------------------------------------------------ tensors

    def count(self, inputs: Sequence[int], outputs: int = 1) -> None:
        """Check the number of tensors, including optional ones."""
        if len(self.operator.inputs) not in inputs or len(self.operator.outputs) != outputs:
            raise self.corrupt(
                f"{len(self.operator.inputs)} inputs and {len(self.operator.outputs)} outputs"
            )

    def tensor(self, index: int) -> TfliteTensor:
        """Return an input that must be present."""
        tensor = self.optional(index)
        if tensor is None:
            raise self.corrupt(f"input {index} is missing")
        return tensor

    def optional(self, index: int) -> TfliteTensor | None:
        """Return an input, or ``None`` if it is left out."""
        self.looked.add(index)
        return self.operator.inputs[index] if index < len(self.operator.inputs) else None

    def ignore(self, *inputs: int) -> None:
        """State that some inputs have no effect: the output's own shape says the same."""
        self.looked.update(inputs)

    @property
    def limits(self) -> Pair:
        """The inclusive range of the activations' type."""
        return INT8 if self.dtype == "int8" else INT16

    def quantized(self, tensor: TfliteTensor | None) -> TfliteTensor:
        """Check for a tensor of the activations' type, per tensor, computed or constant."""
        if tensor is None:
            raise self.corrupt("an activation is missing")
        if tensor.dtype == "float32":
            raise self._float(tensor)
        if tensor.dtype != self.dtype and self.dtype != "int8":
            raise self.unsupported(
                f"{tensor.dtype} beside {self.dtype} activations ({tensor.place})",
                f"all activations of an operator must be {self.dtype}",
            )
        if tensor.dtype != self.dtype:
            raise self.unsupported(f"{tensor.dtype} activations ({tensor.place})", FULL_INT8)
        self.step(tensor)
        return tensor

    def activation(self, tensor: TfliteTensor | None) -> TfliteTensor:
        """Check for a tensor of the activations' type, per tensor, computed at run time."""
        if tensor is not None and tensor.data is not None:
            raise self.unsupported(
                f"{tensor.place} is constant, not an activation",
                "fold operators of constants when exporting",
            )
        return self.quantized(tensor)

    def _float(self, tensor: TfliteTensor) -> HtvmError:
        weights = [item for item in self.operator.inputs if item and item.dtype in ("int8", "int4")]
        if weights:
            return self.unsupported(
                f"dynamic-range quantization: float32 activations ({tensor.place}) with "
                f"{weights[0].dtype} weights ({weights[0].place})",
                FULL_INT8 + " (a representative dataset is needed)",
            )
        return self.unsupported(f"float32 activations ({tensor.place})", FULL_INT8)

    def source(self, index: int = 0) -> TfliteTensor:
        """Return an input that is an activation."""
        return self.activation(self.tensor(index))

    def result(self, index: int = 0) -> TfliteTensor:
        """Return an output that is an activation."""
        return self.activation(self.operator.outputs[index])

    def value(self, tensor: TfliteTensor) -> Activation:
        """Return the activation for a tensor."""
        if tensor.variable:
            raise self.unsupported(
                f"{tensor.place} keeps its value between runs", "export the state as in- and output"
            )
        return self._values[tensor.index]

    def step(self, tensor: TfliteTensor) -> Quantization:
        """Return the quantization of a tensor of 8 or 16 bits, per tensor."""
        if len(tensor.scales) != 1:
            raise self.unsupported(
                f"{tensor.place} has {len(tensor.scales)} scales", "quantize activations per tensor"
            )
        if tensor.dtype in ("int16", "int32") and tensor.zero_points[0]:
            raise self.unsupported(
                f"zero point {tensor.zero_points[0]} of {tensor.place}, {tensor.dtype}",
                "quantize it symmetrically",
            )
        low, high = (0, 255) if tensor.dtype == "uint8" else INT8
        if not low <= tensor.zero_points[0] <= high:
            raise self.corrupt(f"zero point {tensor.zero_points[0]} of {tensor.place}")
        return Quantization(tensor.scales[0], tensor.zero_points[0])

    def same_quantization(self, first: TfliteTensor, second: TfliteTensor) -> bool:
        """Whether two tensors have the same scale and zero point."""
        a, b = self.step(first), self.step(second)
        return a.zero_point == b.zero_point and math.isclose(a.scale, b.scale, rel_tol=1e-6)

    def differ_by_128(self, first: TfliteTensor, second: TfliteTensor) -> bool:
        """Whether an int8 and a uint8 tensor stand for the same reals, 128 apart."""
        a, b = self.step(first), self.step(second)
        apart = b.zero_point - a.zero_point
        return a.scale == b.scale and apart == (128 if second.dtype == "uint8" else -128)

    def same_step(self, index: int = 0) -> TfliteTensor:
        """Return an input that has the scale and zero point of all outputs."""
        source = self.source(index)
        if not all(
            self.same_quantization(source, self.activation(tensor))
            for tensor in self.operator.outputs
        ):
            raise self.unsupported("input and output differ in scale or zero point")
        return source

    def constant(self, index: int, role: str) -> tuple[int, ...]:
        """Return an input that must be constant integers."""
        tensor = self.tensor(index)
        if tensor.data is None or tensor.dtype not in ("int32", "int64"):
            raise self.unsupported(
                f"{role} that are not constant int32 ({tensor.place})", "make them constant"
            )
        self.budget.spend_places(tensor.data.size, self.where)
        return tuple(tensor.data.tolist())

    def weights(self, rank: int, axis: int) -> TfliteTensor:
        """Return input 1: constant weights of 8 or 4 bits, symmetric, per tensor or along ``axis``.

        Weights beside int16 activations have 8 bits.
        """
        tensor = self.tensor(1)
        if tensor.data is None:
            raise self.unsupported("its weights are computed at run time", "make them constant")
        if tensor.dtype != "int8" and (tensor.dtype, self.dtype) != ("int4", "int8"):
            beside = f" beside {self.dtype} activations" if self.dtype != "int8" else ""
            raise self.unsupported(f"{tensor.dtype} weights{beside} ({tensor.place})", FULL_INT8)
        if len(tensor.shape) != rank:
            raise self.corrupt(f"weights of shape {tensor.shape}")
        if not tensor.scales:
            raise self.corrupt(f"{tensor.place} has no scale")
        if any(tensor.zero_points):
            raise self.unsupported(
                f"weights with a zero point ({tensor.place})", "quantize weights symmetrically"
            )
        if len(tensor.scales) > 1 and tensor.axis != axis:
            raise self.unsupported(
                f"{tensor.place} has scales along axis {tensor.axis}",
                "quantize weights per output channel",
            )
        return tensor

    # ------------------------------------------------------------------------ options

    def options(self, kind: int) -> FlatTable:
        """Return the operator's options, which must be of this kind."""
        if self.operator.options is None or self.operator.options_type != kind:
            raise self.corrupt(f"options of type {self.operator.options_type} instead of {kind}")
        return self.operator.options

    def positive(self, table: FlatTable, field: int, name: str, default: int = 0) -> int:
        """Return a field that must be a sensible positive number."""
        value = table.integer(field, "i", default)
        if not 1 <= value <= _LARGEST:
            raise self.corrupt(f"{name} {value}")
        return value

    def clip(self, table: FlatTable, field: int, tensor: TfliteTensor | None = None) -> Pair:
        """Return the fused activation function as bounds of the output."""
        code = table.integer(field, "b")
        if code not in _BOUNDS:
            raise self.unsupported(
                f"fused activation function {code}", "supported are none, ReLU, ReLU-1-to-1, ReLU6"
            )
        low, high = _BOUNDS[code]
        step = self.step(tensor or self.result())
        least, most = self.limits
        return bound(low, step, least, self.limits), bound(high, step, most, self.limits)

    def check_read(self) -> None:
        """Check that all inputs and options that are set have been read.

        An option or input that no handler looks at would be ignored without a word, and the result
        could be wrong.  `FlatTable` and this class record what has been looked at; everything else
        must have its default value, or be known to have no effect.

        Raises:
            UnsupportedError: one has not; the message names it.
        """
        for at, tensor in enumerate(self.operator.inputs):
            if tensor is not None and at not in self.looked:
                raise self.unsupported(f"input {at} ({tensor.place}) is given, and not supported")
        table = self.operator.options
        if table is None:
            return
        fields = OPTIONS.get(self.operator.options_type, "").split()
        for number, offset in enumerate(table.fields):
            if not offset or number in table.looked:
                continue
            name, _, default = (fields[number] if number < len(fields) else "").partition("=")
            if name.endswith("~"):
                continue
            # All scalars of options are in little-endian order, so the first byte tells 0 from
            # others below 256; no option that is left unread is larger.
            value = table.integer(number, "B")
            if value != int(default or 0):
                raise self.unsupported(
                    f"option '{name or f'number {number}'}' is {value}, and not supported"
                )

    # ------------------------------------------------------------------------ shapes

    def batch(self, tensor: TfliteTensor, rank: int) -> None:
        """Check for a rank, and a batch of one."""
        if len(tensor.shape) != rank:
            raise self.unsupported(f"{tensor.place} of shape {tensor.shape}", f"use {rank} axes")
        if tensor.shape[0] != 1:
            raise self.unsupported(f"a batch of {tensor.shape[0]}", "export with a batch of 1")

    def last_axis(self, tensor: TfliteTensor) -> int:
        """Return the size of a tensor's last axis, which it must have."""
        if not tensor.shape:
            raise self.unsupported(f"{tensor.place} has no axes", "give it at least one")
        return tensor.shape[-1]

    def axis(self, number: int, rank: int) -> int:
        """Return an axis, which may count from the end."""
        if not -rank <= number < rank:
            raise self.corrupt(f"axis {number} of {rank}")
        return number % rank

    def result_shape(self, shape: Sequence[int], index: int = 0) -> None:
        """Check that the declared shape of an output is the computed one."""
        declared = self.operator.outputs[index].shape
        if declared != tuple(shape):
            raise self.corrupt(
                f"an output of shape {declared}, but inputs and options give {tuple(shape)}"
            )

    # ------------------------------------------------------------------------ results

    def position(self, sub: int = 0) -> Pair:
        """Return the position of an operator made from the current one."""
        return (self.operator.index, sub)

    def apply(self, op: Op, *inputs: Activation, sub: int = 0, stem: str = "") -> Applied:
        """Return an operator of the integer form applied to tensors.

        Args:
            op: the operator.
            inputs: the tensors.
            sub: its number among those made from the current one.
            stem: stem of its name; the operator's own if empty.
        """
        return Applied(self.position(sub), self.where, inputs, op, stem)

    def results(self, records: Sequence[Applied]) -> list[Activation]:
        """Return the outputs that operators compute, which must be as the file declares them."""
        try:
            activations = [Activation.of(record) for record in records]
        except IntegerFormError as error:
            raise self.corrupt(error.what) from error
        for at, (tensor, result) in enumerate(zip(self.operator.outputs, activations, strict=True)):
            self.result_shape(result.shape, at)
            if tensor.dtype != result.dtype:
                raise self.corrupt(f"{tensor.place} of {tensor.dtype} instead of {result.dtype}")
        return activations


def constant_array(tensor: TfliteTensor) -> Array:
    """Return the elements of a constant in their shape."""
    assert tensor.data is not None
    return tensor.data.reshape(tensor.shape)


Handler: TypeAlias = Callable[[OperatorReader], Sequence[Applied]]
"""Reads one operator: one record per output."""
