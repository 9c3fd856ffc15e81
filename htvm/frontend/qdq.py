"""Reading a quantize/dequantize (QDQ) Relax module into the operators it stands for.

In such a module int8 tensors are dequantized, a float operator works on them, and its result is
quantized again.  The numbers are float, but what is meant is integer arithmetic; this reader finds
the operators, with their integer weights, and forgets the floats.  Any module of this shape is
read, not only those of TVM's own importers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from tvm import relax
from tvm.ir import GenericConst

from byoc_dory.errors import UnsupportedError
from byoc_dory.layer import Array
from htvm.frontend.operators import (
    Activation,
    Add,
    AveragePool,
    Conv,
    Convert,
    Dense,
    MaxPool,
    Operator,
    Pad,
    Pads,
    Pair,
    Reshape,
    Softmax,
    Step,
)
from patterns.primitive import shape_of
from patterns.read import bindings_of, dtype_of, main_of

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import Call, Expr, Var

__all__ = ["BIAS_TOLERANCE", "Network", "read_qdq"]

_INT8 = (-128, 127)
_SOFTMAX_STEP = Step(1 / 256, -128)
BIAS_TOLERANCE = 0.02
"""How far the scale of a bias may be from s_in * s_w for its integers to be taken as they are."""


@dataclass(frozen=True, eq=False)
class Network:
    """What a QDQ module computes.

    Attributes:
        inputs: name and tensor of each parameter.
        outputs: tensors returned.
        steps: quantization of the tensors, where the module says it.
    """

    inputs: tuple[tuple[str, Activation], ...]
    outputs: tuple[Activation, ...]
    steps: Mapping[Activation, Step]


# ------------------------------------------------------------------------ what a variable can be


@dataclass(frozen=True, eq=False)
class _Real:
    """A dequantized activation."""

    activation: Activation
    step: Step


@dataclass(frozen=True, eq=False)
class _Constant:
    """A constant; ``scale`` (of the same shape) where it was dequantized from integers."""

    data: Array
    scale: Array | None = None


@dataclass(frozen=True, eq=False)
class _Pending:
    """A float result on its way to being quantized.

    ``finish`` makes the operator, given the output's step, the clip and the bias.
    """

    finish: Callable[[Step, Pair, _Constant | None], Operator]
    shape: tuple[int, ...]
    takes_bias: bool
    bias: _Constant | None = None
    low: float = -math.inf
    high: float = math.inf


@dataclass(frozen=True, eq=False)
class _Wide:
    """An int8 activation cast to int32, or its average."""

    activation: Activation
    pool: AveragePool | None = None


_Value: TypeAlias = "Activation | _Real | _Constant | _Pending | _Wide"


def read_qdq(module: IRModule) -> Network:
    """The operators of a QDQ module.

    Raises:
        UnsupportedError: if an operator or a quantization is not supported, named with the
            variable it is bound to.
        IntegerFormError: if there is no function ``main``.
    """
    return _Reader(module).read()


class _Reader:
    """Walks ``main`` once, knowing of each variable what it stands for."""

    def __init__(self, module: IRModule) -> None:
        self._main = main_of(module)
        self._values: dict[Var, _Value] = {}
        self._steps: dict[Activation, Step] = {}
        self._index = 0
        self._where = ""

    def read(self) -> Network:
        """Read all bindings."""
        inputs = []
        for param in self._main.params:
            self._where = f"input '{param.name}'"
            if dtype_of(param) != "int8":
                raise self._unsupported(
                    f"its type is {param.ty}", "give the model int8 inputs and outputs"
                )
            activation = Activation(shape_of(param), str(param.name))
            self._values[param] = activation
            inputs.append((str(param.name), activation))
        for index, (var, value) in enumerate(bindings_of(self._main)):
            self._index = index
            self._values[var] = self._evaluate(var, value)
        self._where = "the outputs of 'main'"
        body = self._main.body.body
        return Network(tuple(inputs), tuple(self._outputs(body)), self._steps)

    def _outputs(self, expr: Expr) -> list[Activation]:
        values = self._value_of(expr)
        values = values if isinstance(values, tuple) else (values,)
        if not all(isinstance(value, Activation) for value in values):
            raise self._unsupported(
                "an output that is not int8", "give the model int8 inputs and outputs"
            )
        return list(values)

    # -------------------------------------------------------------------- helpers

    def _unsupported(self, what: str, hint: str = "") -> UnsupportedError:
        return UnsupportedError(what, where=self._where, hint=hint)

    def _value_of(self, expr: Expr) -> Any:
        if isinstance(expr, GenericConst):
            return _Constant(expr.value.numpy())
        if isinstance(expr, relax.Var) and expr in self._values:
            return self._values[expr]
        if isinstance(expr, relax.Tuple):
            return tuple(self._value_of(field) for field in expr.fields)
        raise self._unsupported(f"an argument of kind {type(expr).__name__}")

    def _position(self, sub: int = 0) -> Pair:
        return (self._index, sub)

    def _evaluate(self, var: Var, value: Expr) -> Any:
        self._where = f"variable '{var.name}'"
        if isinstance(value, relax.Var | relax.Tuple | GenericConst):
            return self._value_of(value)
        name = str(getattr(getattr(value, "op", None), "name", type(value).__name__))
        self._where = f"operator '{name}' bound to variable '{var.name}'"
        handler = _HANDLERS.get(name)
        if handler is None:
            raise self._unsupported(
                f"operator '{name}' is not supported",
                f"supported are {', '.join(sorted(_HANDLERS))}",
            )
        return handler(self, value)

    def _activation(self, operator: Operator, shape: tuple[int, ...], step: Step | None) -> Any:
        result = Activation(shape, operator)
        if step is not None:
            self._steps[result] = step
        return result

    def _pass_on(self, source: Any, make: Callable[[Activation], Operator], call: Call) -> Any:
        """An operator that keeps the step, on an int8 tensor or through its float view."""
        shape = shape_of(call)
        if isinstance(source, _Real):
            operator = make(source.activation)
            return _Real(self._activation(operator, shape, source.step), source.step)
        if isinstance(source, Activation):
            return self._activation(make(source), shape, self._steps.get(source))
        raise self._unsupported("its operand has not been quantized")

    def _real(self, value: Any, role: str) -> _Real:
        if not isinstance(value, _Real):
            raise self._unsupported(
                f"its {role} is not a dequantized int8 tensor",
                "quantize and dequantize between all operators",
            )
        return value

    # -------------------------------------------------------------------- quantization

    def dequantize(self, call: Call) -> Any:
        """Int8 tensor -> float view; integer constant -> constant with scales."""
        data, scale, zero_point = (self._value_of(arg) for arg in call.args[:3])
        scales = np.asarray(scale.data, dtype="float32")
        zeros = np.asarray(zero_point.data, dtype="int64")
        if isinstance(data, _Constant):
            if zeros.any():
                raise self._unsupported(
                    f"weights with zero point {zeros.reshape(-1)[0]}", "quantize them symmetrically"
                )
            if scales.size > 1:
                axis = int(call.attrs.axis) % data.data.ndim
                scales = scales.reshape((-1,) + (1,) * (data.data.ndim - 1 - axis))
            return _Constant(data.data, np.broadcast_to(scales, data.data.shape))
        if not isinstance(data, Activation):
            raise self._unsupported("it dequantizes something that is not int8")
        step = self._step(scales, zeros)
        self._learn(data, step)
        return _Real(data, step)

    def _learn(self, activation: Activation, step: Step) -> None:
        """Note a step, also of the tensors whose values the activation's are."""
        while activation not in self._steps:
            self._steps[activation] = step
            if not isinstance(activation.origin, Reshape | Pad | MaxPool | AveragePool):
                break
            activation = activation.origin.inputs[0]

    def _step(self, scales: Array, zeros: Array) -> Step:
        if scales.size != 1 or zeros.size != 1:
            raise self._unsupported(
                f"an activation with {scales.size} scales", "quantize activations per tensor"
            )
        scale, zero_point = float(scales.reshape(-1)[0]), int(zeros.reshape(-1)[0])
        if not (scale > 0 and math.isfinite(scale)) or not -128 <= zero_point <= 127:
            raise self._unsupported(f"scale {scale} with zero point {zero_point}")
        return Step(scale, zero_point)

    def quantize(self, call: Call) -> Any:
        """The end of an operator."""
        value, scale, zero_point = (self._value_of(arg) for arg in call.args[:3])
        step = self._step(np.asarray(scale.data, "float32"), np.asarray(zero_point.data))
        if str(call.attrs.out_dtype) != "int8":
            raise self._unsupported(f"activations of type {call.attrs.out_dtype}", "use int8")
        if isinstance(value, _Real):
            if value.step == step:
                return value.activation
            value = self._identity(value)
        if not isinstance(value, _Pending):
            raise self._unsupported("it quantizes something that no operator computed")
        clip = (_bound(value.low, step, -128), _bound(value.high, step, 127))
        if clip[0] > clip[1]:
            raise self._unsupported(f"a clip to [{value.low}, {value.high}] leaves nothing")
        return self._activation(value.finish(step, clip, value.bias), value.shape, step)

    def _identity(self, source: _Real) -> _Pending:
        position, where = self._position(), self._where

        def finish(step: Step, clip: Pair, _: _Constant | None) -> Operator:
            return Convert(position, where, (source.activation,), (source.step, step), clip)

        return _Pending(finish, source.activation.shape, takes_bias=False)

    # -------------------------------------------------------------------- multiplications

    def conv2d(self, call: Call) -> Any:
        """A convolution; its result waits for bias and quantization."""
        source = self._real(self._value_of(call.args[0]), "input")
        attrs = call.attrs
        layout, kernel_layout = str(attrs.data_layout), str(attrs.kernel_layout)
        axes = {"HWIO": (3, 2, 0, 1), "HWOI": (2, 3, 0, 1), "OIHW": (0, 1, 2, 3)}
        if layout not in ("NHWC", "NCHW") or kernel_layout not in axes:
            raise self._unsupported(f"layouts {layout} and {kernel_layout}")
        weight = self._weight(call.args[1], axes[kernel_layout])
        self._batch_of_one(source.activation.shape)
        position, where, scales = self._position(), self._where, _channel_scales(self, weight)

        def finish(step: Step, clip: Pair, bias: _Constant | None) -> Operator:
            return Conv(
                position,
                where,
                (source.activation,),
                weight=weight.data,
                bias=self._bias(bias, source.step, scales, weight.data.shape[0], where),
                ratios=_ratios(source.step, scales, step),
                input_zero_point=source.step.zero_point,
                output_zero_point=step.zero_point,
                clip=clip,
                strides=_pair(attrs.strides),
                padding=_pads(attrs.padding),
                dilation=_pair(attrs.dilation),
                groups=int(attrs.groups),
                layout=layout,
            )

        return _Pending(finish, shape_of(call), takes_bias=True)

    def matmul(self, call: Call) -> Any:
        """A fully connected layer, flattened to (1, C) where it is not."""
        source = self._real(self._value_of(call.args[0]), "first operand")
        weight = self._weight(call.args[1], (1, 0))
        shape, result = source.activation.shape, shape_of(call)
        if math.prod(shape[:-1]) != 1:
            raise self._unsupported(f"an input of shape {shape}", "only one row is supported")
        where, scales = self._where, _channel_scales(self, weight)
        at = [self._position(sub) for sub in range(3)]

        def finish(step: Step, clip: Pair, bias: _Constant | None) -> Operator:
            vector = source.activation
            if len(shape) != 2:
                flat = (1, shape[-1])
                vector = Activation(flat, Reshape(at[0], where, (vector,), flat))
            dense = Dense(
                at[1],
                where,
                (vector,),
                weight=weight.data,
                bias=self._bias(bias, source.step, scales, weight.data.shape[0], where),
                ratios=_ratios(source.step, scales, step),
                input_zero_point=source.step.zero_point,
                output_zero_point=step.zero_point,
                clip=clip,
            )
            if len(result) == 2:
                return dense
            rows = Activation((1, result[-1]), dense)
            return Reshape(at[2], where, (rows,), result)

        return _Pending(finish, result, takes_bias=True)

    def _batch_of_one(self, shape: tuple[int, ...]) -> None:
        if shape[0] != 1:
            raise self._unsupported(f"a batch of {shape[0]}", "only a batch of 1 is supported")

    def _weight(self, expr: Expr, axes: tuple[int, ...]) -> _Constant:
        value = self._value_of(expr)
        if not isinstance(value, _Constant):
            raise self._unsupported("its weights are computed at run time", "make them constant")
        if value.scale is None or value.data.dtype != np.int8:
            raise self._unsupported(
                f"its weights are {value.data.dtype}, not dequantized int8",
                "quantize the model fully to int8",
            )
        if value.data.ndim != len(axes):
            raise self._unsupported(f"weights of shape {value.data.shape}")
        data = np.ascontiguousarray(value.data.transpose(axes))
        return _Constant(data, value.scale.transpose(axes))

    def _bias(
        self, bias: _Constant | None, step: Step, scales: Array, channels: int, where: str
    ) -> Array:
        if bias is None:
            return np.zeros(channels, "int32")
        data = np.broadcast_to(bias.data.reshape(-1), (channels,))
        product = np.float64(step.scale) * scales.astype("float64")
        if bias.scale is None:
            return _rounded_bias(data.astype("float64") / product, where)
        given = bias.scale.reshape(-1).astype("float64")
        if np.all(np.abs(given - product) <= BIAS_TOLERANCE * product):
            return data.astype("int32")
        return _rounded_bias(data.astype("float64") * given / product, where)

    # -------------------------------------------------------------------- element-wise

    def add(self, call: Call) -> Any:
        """A bias, or the sum of two activations."""
        first, second = (self._value_of(arg) for arg in call.args)
        if isinstance(first, _Constant) and not isinstance(second, _Constant):
            first, second = second, first
        if isinstance(first, _Pending) and isinstance(second, _Constant):
            return self._with_bias(first, second)
        a, b = self._real(first, "first operand"), self._real(second, "second operand")
        if a.activation.shape != b.activation.shape:
            raise self._unsupported(
                f"operands of shapes {a.activation.shape} and {b.activation.shape}",
                "broadcasting is not supported",
            )
        position, where = self._position(), self._where

        def finish(step: Step, clip: Pair, _: _Constant | None) -> Operator:
            operands = (a.activation, b.activation)
            return Add(position, where, operands, (a.step, b.step, step), clip)

        return _Pending(finish, shape_of(call), takes_bias=False)

    def _with_bias(self, pending: _Pending, bias: _Constant) -> _Pending:
        if not pending.takes_bias or pending.bias is not None or pending.low > -math.inf:
            raise self._unsupported("a constant added to something that is no bare product")
        return replace(pending, bias=bias)

    def relu(self, call: Call) -> Any:
        """A lower bound of zero on what is pending."""
        return self._bounded(self._value_of(call.args[0]), 0.0, math.inf)

    def clip(self, call: Call) -> Any:
        """Bounds on a float result, or on an int8 tensor that was just computed."""
        value = self._value_of(call.args[0])
        low, high = float(call.args[1].value), float(call.args[2].value)
        if not isinstance(value, Activation):
            return self._bounded(value, low, high)
        origin = value.origin
        if not isinstance(origin, Conv | Dense | Add | Convert | AveragePool):
            if low <= _INT8[0] and high >= _INT8[1]:
                return value
            raise self._unsupported("an int8 clip that does not follow an operator with one")
        clip = (max(origin.clip[0], math.ceil(low)), min(origin.clip[1], math.floor(high)))
        if clip[0] > clip[1]:
            raise self._unsupported(f"a clip to [{low}, {high}] leaves nothing")
        return self._activation(replace(origin, clip=clip), value.shape, self._steps.get(value))

    def _bounded(self, value: Any, low: float, high: float) -> Any:
        if isinstance(value, _Real):
            value = self._identity(value)
        if not isinstance(value, _Pending):
            raise self._unsupported("its operand has not been quantized")
        return replace(value, low=max(value.low, low), high=min(value.high, high))

    def softmax(self, call: Call) -> Any:
        """Softmax over the last axis."""
        source = self._real(self._value_of(call.args[0]), "input")
        rank = len(source.activation.shape)
        if int(call.attrs.axis) % rank != rank - 1:
            raise self._unsupported(f"softmax over axis {call.attrs.axis}", "use the last axis")
        position, where = self._position(), self._where

        def finish(step: Step, clip: Pair, _: _Constant | None) -> Operator:
            if step != _SOFTMAX_STEP or clip != _INT8:
                raise UnsupportedError(
                    f"a softmax quantized to {step} and clipped to {clip}",
                    where=where,
                    hint="int8 softmax has scale 1/256 and zero point -128",
                )
            return Softmax(position, where, (source.activation,), source.step.scale)

        return _Pending(finish, source.activation.shape, takes_bias=False)

    # -------------------------------------------------------------------- shapes and pools

    def reshape(self, call: Call) -> Any:
        """Another shape, of a constant or an activation."""
        value = self._value_of(call.args[0])
        shape = shape_of(call)
        if isinstance(value, _Constant):
            scale = None if value.scale is None else value.scale.reshape(shape)
            return _Constant(value.data.reshape(shape), scale)
        at, where = self._position(), self._where
        return self._pass_on(value, lambda source: Reshape(at, where, (source,), shape), call)

    def permute_dims(self, call: Call) -> Any:
        """A transposed constant."""
        value = self._value_of(call.args[0])
        if not isinstance(value, _Constant):
            raise self._unsupported("a transposed activation")
        axes = None if call.attrs.axes is None else [int(axis) for axis in call.attrs.axes]
        scale = None if value.scale is None else value.scale.transpose(axes)
        return _Constant(value.data.transpose(axes), scale)

    def multiply(self, call: Call) -> Any:
        """A product of constants, such as the scale of a bias."""
        first, second = (self._value_of(arg) for arg in call.args)
        plain = (isinstance(item, _Constant) and item.scale is None for item in (first, second))
        if not all(plain):
            raise self._unsupported("a product of activations")
        return _Constant(first.data * second.data)

    def pad(self, call: Call) -> Any:
        """A constant border of two spatial axes."""
        value = self._value_of(call.args[0])
        widths = [int(width) for width in call.attrs.pad_width]
        spatial = {"NHWC": slice(2, 6), "NCHW": slice(4, 8)}
        layout = next(
            (name for name, part in spatial.items() if sum(widths) == sum(widths[part])), None
        )
        if len(widths) != 8 or layout is None or str(call.attrs.pad_mode) != "constant":
            raise self._unsupported(f"a padding of {widths} in mode {call.attrs.pad_mode}")
        top, bottom, left, right = widths[spatial[layout]]
        fill = float(call.attrs.pad_value)
        if isinstance(value, _Real):
            fill = value.step.zero_point + round(fill / value.step.scale)
        if not fill.is_integer() if isinstance(fill, float) else False:
            raise self._unsupported(f"a padding with {fill}")
        number = min(max(int(fill), _INT8[0]), _INT8[1])
        at, where, padding = self._position(), self._where, (top, left, bottom, right)
        return self._pass_on(
            value, lambda source: Pad(at, where, (source,), padding, number, layout), call
        )

    def max_pool2d(self, call: Call) -> Any:
        """A maximum; it commutes with dequantization."""
        kernel, strides, padding, layout = self._window(call)
        at, where = self._position(), self._where
        return self._pass_on(
            self._value_of(call.args[0]),
            lambda source: MaxPool(at, where, (source,), kernel, strides, padding, layout),
            call,
        )

    def avg_pool2d(self, call: Call) -> Any:
        """An average, of a float view or of an int8 tensor cast to int32."""
        value = self._value_of(call.args[0])
        kernel, strides, padding, layout = self._window(call)
        if call.attrs.count_include_pad and any(padding):
            raise self._unsupported("an average that counts its padding")
        at, where, shape = self._position(), self._where, shape_of(call)

        def make(source: Activation, clip: Pair) -> AveragePool:
            return AveragePool(at, where, (source,), kernel, strides, padding, clip, layout)

        if isinstance(value, _Wide) and value.pool is None:
            return _Wide(value.activation, make(value.activation, _INT8))
        source = self._real(value, "input")

        def finish(step: Step, clip: Pair, _: _Constant | None) -> Operator:
            if step != source.step:
                raise UnsupportedError(
                    f"an average from {source.step} to {step}",
                    where=where,
                    hint="give input and output one scale and zero point",
                )
            return make(source.activation, clip)

        return _Pending(finish, shape, takes_bias=False)

    def _window(self, call: Call) -> tuple[Pair, Pair, Pads, str]:
        attrs = call.attrs
        if _pair(attrs.dilation) != (1, 1) or attrs.ceil_mode:
            raise self._unsupported("a pool with dilation or ceil_mode")
        layout = str(attrs.layout)
        if layout not in ("NHWC", "NCHW") or str(attrs.out_layout) not in ("", layout):
            raise self._unsupported(f"layouts {layout} and {attrs.out_layout}")
        return _pair(attrs.pool_size), _pair(attrs.strides), _pads(attrs.padding), layout

    def astype(self, call: Call) -> Any:
        """To int32 before an average pool, and back to int8 after it."""
        value, dtype = self._value_of(call.args[0]), str(call.attrs.dtype)
        if isinstance(value, _Constant):
            if value.scale is None:
                return _Constant(value.data.astype(dtype))
        elif isinstance(value, Activation) and dtype == "int32":
            return _Wide(value)
        elif isinstance(value, _Wide) and value.pool is not None and dtype == "int8":
            step = self._steps.get(value.activation)
            shape = shape_of(call)
            return self._activation(value.pool, shape, step)
        raise self._unsupported(f"a cast to {dtype}")


# ------------------------------------------------------------------------------ small functions


def _bound(real: float, step: Step, otherwise: int) -> int:
    """A real bound in steps, inside int8."""
    if math.isinf(real):
        return otherwise
    scaled = float(np.float32(real) / np.float32(step.scale))
    number = step.zero_point + int(math.copysign(math.floor(abs(scaled) + 0.5), scaled))
    return min(max(number, _INT8[0]), _INT8[1])


def _rounded_bias(values: Array, where: str) -> Array:
    rounded = np.rint(values)
    if not np.all(np.isfinite(rounded)) or np.abs(rounded).max(initial=0) > 2**31 - 1:
        raise UnsupportedError("a bias that does not fit int32", where=where)
    return rounded.astype("int32")


def _channel_scales(reader: _Reader, weight: _Constant) -> Array:
    """One scale, or one per output channel (axis 0)."""
    assert weight.scale is not None
    rows = weight.scale.reshape(weight.scale.shape[0], -1)
    if not np.all(rows == rows[:, :1]):
        raise reader._unsupported(
            "weights with scales along an axis other than the output channels",
            "quantize per tensor or per output channel",
        )
    if not np.all(rows > 0) or not np.all(np.isfinite(rows)):
        raise reader._unsupported("a weight scale that is not positive and finite")
    scales = rows[:, 0]
    return scales[:1] if np.all(scales == scales[0]) else scales


def _ratios(source: Step, scales: Array, output: Step) -> tuple[float, ...]:
    return tuple(source.scale * float(scale) / output.scale for scale in scales)


def _pair(values: Any) -> Pair:
    first, second = (int(value) for value in values)
    return first, second


def _pads(values: Any) -> Pads:
    top, left, bottom, right = (int(value) for value in values)
    return top, left, bottom, right


_HANDLERS: Mapping[str, Callable[[_Reader, Any], Any]] = {
    "relax.add": _Reader.add,
    "relax.astype": _Reader.astype,
    "relax.clip": _Reader.clip,
    "relax.dequantize": _Reader.dequantize,
    "relax.matmul": _Reader.matmul,
    "relax.multiply": _Reader.multiply,
    "relax.nn.avg_pool2d": _Reader.avg_pool2d,
    "relax.nn.conv2d": _Reader.conv2d,
    "relax.nn.max_pool2d": _Reader.max_pool2d,
    "relax.nn.pad": _Reader.pad,
    "relax.nn.relu": _Reader.relu,
    "relax.nn.softmax": _Reader.softmax,
    "relax.permute_dims": _Reader.permute_dims,
    "relax.quantize": _Reader.quantize,
    "relax.reshape": _Reader.reshape,
}
