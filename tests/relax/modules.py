"""Helper: Relax functions of all kinds, each with what it is called with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import relax, te, topi
from tvm.relax import op as R

Array = np.ndarray[Any, Any]
Body = Callable[..., Any]
RNG = np.random.default_rng(28)


@dataclass(frozen=True)
class Case:
    """A function: shapes and dtypes of its inputs, and what writes its body."""

    inputs: tuple[Any, ...]
    body: Body

    def arrays(self, seed: int = 0) -> list[Any]:
        """Inputs, as nested tuples where the function takes tuples."""
        rng = np.random.default_rng(seed)

        def made(each: Any) -> Any:
            if isinstance(each, list):
                return [made(part) for part in each]
            shape, dtype = each
            if dtype == "bool":
                return rng.integers(0, 2, shape).astype(bool)
            if np.issubdtype(dtype, np.integer):
                low, high = (0, 200) if dtype.startswith("u") else (-100, 100)
                return rng.integers(low, high, shape).astype(dtype)
            return rng.normal(size=shape).astype(dtype)

        return [made(each) for each in self.inputs]


CASES: dict[str, Case] = {}


def case(*inputs: Any) -> Callable[[Body], Body]:
    """Enter a body under its function's name."""

    def enter(body: Body) -> Body:
        CASES[body.__name__] = Case(inputs, body)
        return body

    return enter


def real(*shape: int, scale: float = 0.5) -> Any:
    """A constant of float32."""
    return relax.const((RNG.normal(size=shape) * scale).astype("float32"))


def whole(*shape: int, dtype: str = "int8", low: int = -60, high: int = 60) -> Any:
    """A constant of integers."""
    return relax.const(RNG.integers(low, high, shape).astype(dtype))


def number(value: float, dtype: str) -> Any:
    """A constant without axes."""
    return relax.const(value, dtype)


def module_of(names: Sequence[str]) -> tvm.IRModule:
    """A module with these functions, each public."""
    bb = relax.BlockBuilder()
    for name in names:
        write(bb, name, CASES[name])
    return bb.finalize()


def write(bb: Any, name: str, given: Case) -> None:
    """Write a function into a module."""

    def ty(each: Any) -> Any:
        if isinstance(each, list):
            return relax.TupleType([ty(part) for part in each])
        return relax.TensorType(*each)

    inputs = [relax.Var(f"x{at}", ty(each)) for at, each in enumerate(given.inputs)]
    with bb.function(name, inputs):
        with bb.dataflow():
            result = bb.emit_output(bb.normalize(given.body(bb, *inputs)))
        bb.emit_func_output(result)


# ------------------------------------------------------------------------------ reals


@case(((1, 16), "float32"))
def mlp(bb: Any, x: Any) -> Any:
    hidden = R.nn.relu(R.add(R.matmul(x, real(16, 32)), real(32)))
    return R.nn.softmax(R.matmul(R.nn.gelu(hidden), real(32, 8)))


@case(((2, 16), "float32"))
def mlp_transposed(bb: Any, x: Any) -> Any:
    return R.nn.silu(R.linear(x, real(8, 16), real(8)))


@case(((1, 3, 9, 9), "float32"))
def conv_nchw(bb: Any, x: Any) -> Any:
    y = R.nn.conv2d(x, real(4, 3, 3, 3), padding=1, strides=2)
    return R.nn.leakyrelu(R.add(y, real(1, 4, 1, 1)), 0.1)


@case(((1, 8, 8, 3), "float32"))
def conv_nhwc(bb: Any, x: Any) -> Any:
    y = R.nn.conv2d(x, real(3, 3, 3, 4), padding=1, data_layout="NHWC", kernel_layout="HWIO")
    return R.clip(R.add(y, real(4)), 0, 6)


@case(((1, 4, 8, 8), "float32"))
def depthwise(bb: Any, x: Any) -> Any:
    y = R.nn.conv2d(x, real(4, 1, 3, 3), padding=[1, 1, 0, 0], groups=4)
    return R.nn.conv2d(R.nn.relu(y), real(6, 4, 1, 1), dilation=1)


@case(((1, 3, 20), "float32"))
def conv1d(bb: Any, x: Any) -> Any:
    return R.tanh(R.nn.conv1d(x, real(4, 3, 5), padding=2, dilation=2))


@case(((1, 3, 5, 5), "float32"))
def conv_transposed(bb: Any, x: Any) -> Any:
    return R.nn.conv2d_transpose(x, real(3, 2, 3, 3), strides=2, padding=1, output_padding=1)


@case(((1, 4, 8, 8), "float32"))
def pooling(bb: Any, x: Any) -> Any:
    most = R.nn.max_pool2d(x, pool_size=3, strides=2, padding=1)
    mean = R.nn.avg_pool2d(x, pool_size=2, strides=2, count_include_pad=True)
    return relax.Tuple([most, mean, R.nn.adaptive_avg_pool2d(x, 1)])


@case(((1, 4, 6, 8), "float32"), ((1, 5, 6, 8), "float32"), ((1, 5, 6, 8), "float32"))
def attention(bb: Any, q: Any, k: Any, v: Any) -> Any:
    return R.nn.attention(q, bb.emit(R.nn.pad(k, [0] * 8)), v)


@case(((1, 6, 16), "float32"))
def attention_written_out(bb: Any, x: Any) -> Any:
    def heads(weight: Any) -> Any:
        return R.permute_dims(R.reshape(R.matmul(x, weight), (1, 6, 2, 8)), [0, 2, 1, 3])

    q, k, v = (bb.emit(heads(real(16, 16))) for _ in range(3))
    scores = R.multiply(R.matmul(q, R.permute_dims(k, [0, 1, 3, 2])), number(0.35, "float32"))
    mixed = R.matmul(R.nn.softmax(scores), v)
    return R.matmul(R.reshape(R.permute_dims(mixed, [0, 2, 1, 3]), (1, 6, 16)), real(16, 16))


@case(((2, 5, 16), "float32"))
def layer_norm(bb: Any, x: Any) -> Any:
    return R.nn.layer_norm(x, real(16), real(16), axes=-1)


@case(((2, 5, 16), "float32"))
def rms_norm(bb: Any, x: Any) -> Any:
    return R.nn.rms_norm(x, real(16), axes=-1)


@case(((1, 4, 6, 6), "float32"))
def batch_norm(bb: Any, x: Any) -> Any:
    variance = relax.const(np.array([0.5, 1, 2, 3], "float32"))
    return relax.TupleGetItem(
        bb.emit(R.nn.batch_norm(x, real(4), real(4), real(4), variance, axis=1)), 0
    )


@case(((1, 4, 6, 6), "float32"))
def group_norm(bb: Any, x: Any) -> Any:
    return R.nn.group_norm(x, real(4), real(4), num_groups=2, channel_axis=1, axes=[2, 3])


@case(((3, 7), "float32"))
def transcendental(bb: Any, x: Any) -> Any:
    low = R.sqrt(R.add(R.abs(x), number(0.1, "float32")))
    return relax.Tuple([
        R.exp(x), R.log(low), R.sin(x), R.cos(x), R.erf(x), R.sigmoid(x), R.rsqrt(low),
        R.power(low, number(1.7, "float32")), R.atan(x), R.nn.log_softmax(x), R.cosh(x),
    ])  # fmt: skip


@case(((3, 7), "float32"))
def rounding(bb: Any, x: Any) -> Any:
    wide = bb.emit(R.multiply(x, number(10.0, "float32")))
    return relax.Tuple([
        R.floor(wide), R.ceil(wide), R.round(wide), R.trunc(wide), R.sign(wide),
        R.astype(wide, "int32"), R.isnan(wide),
    ])  # fmt: skip


@case(((1, 12, 6), "float32"))
def lstm(bb: Any, x: Any) -> Any:
    weight, recurrent, bias = real(6, 32), real(8, 32), real(32)
    state: Any = relax.const(np.zeros((1, 8), "float32"))
    cell: Any = state
    for step in range(4):
        now = R.squeeze(R.strided_slice(x, [1], [step], [step + 1]), [1])
        gates = bb.emit(R.add(R.add(R.matmul(now, weight), R.matmul(state, recurrent)), bias))
        parts = bb.emit(R.split(gates, 4, axis=1))
        i, f, g, o = (bb.emit(relax.TupleGetItem(parts, at)) for at in range(4))
        kept = R.multiply(R.sigmoid(f), cell)
        cell = bb.emit(R.add(kept, R.multiply(R.sigmoid(i), R.tanh(g))))
        state = bb.emit(R.multiply(R.sigmoid(o), R.tanh(cell)))
    return relax.Tuple([state, cell])


@case(((2, 3, 8), "float32"))
def reductions(bb: Any, x: Any) -> Any:
    return relax.Tuple([
        R.sum(x, axis=1), R.mean(x, axis=[0, 2]), R.max(x, axis=-1, keepdims=True),
        R.min(x), R.variance(x, axis=2), R.prod(x, axis=0), R.std(x, axis=1),
    ])  # fmt: skip


@case(((1, 3, 5, 5), "float32"))
def resized(bb: Any, x: Any) -> Any:
    shape = relax.ShapeExpr((10, 10))
    near = R.image.resize2d(x, shape, layout="NCHW", method="nearest_neighbor")
    return relax.Tuple([near, R.image.resize2d(x, (8, 8), layout="NCHW", method="linear")])


@case(((2, 4), "float64"), ((2, 4), "float32"))
def doubles(bb: Any, x: Any, y: Any) -> Any:
    total = R.add(R.exp(x), R.astype(y, "float64"))
    return relax.Tuple([total, R.astype(total, "float32"), R.nn.softmax(x)])


# ------------------------------------------------------------------------------ integers


@case(((1, 6, 6, 4), "int8"))
def int8_qdq(bb: Any, x: Any) -> Any:
    """A convolution in integers between two quantized tensors, as importers write it."""
    wide = R.subtract(R.astype(x, "int32"), number(3, "int32"))
    kernel = R.astype(whole(3, 3, 4, 8), "int32")
    total = R.nn.conv2d(wide, kernel, padding=1, data_layout="NHWC", kernel_layout="HWIO")
    biased = R.add(total, whole(8, dtype="int32", low=-900, high=900))
    scaled = R.multiply(R.astype(biased, "float32"), number(0.00123456789, "float32"))
    return R.astype(R.clip(R.add(R.round(scaled), number(-5, "float32")), -128, 127), "int8")


@case(((4, 8), "int8"), ((4, 8), "uint8"))
def int8_products(bb: Any, x: Any, y: Any) -> Any:
    return relax.Tuple([
        R.matmul(x, whole(8, 5), out_dtype="int32"),
        R.matmul(R.astype(y, "int32"), whole(8, 5, dtype="int32")),
        R.nn.relu(R.astype(x, "int32")),
    ])  # fmt: skip


@case(((3, 5), "int32"), ((3, 5), "int32"))
def integer_arithmetic(bb: Any, x: Any, y: Any) -> Any:
    right = number(3, "int32")
    return relax.Tuple([
        R.add(x, y), R.multiply(x, y), R.floor_divide(x, number(7, "int32")),
        R.maximum(x, y), R.right_shift(x, right), R.left_shift(x, right), R.bitwise_xor(x, y),
        R.floor_mod(x, number(7, "int32")), R.sum(x, axis=1), R.negative(x),
    ])  # fmt: skip


@case(((3, 5), "int64"), ((3, 5), "int16"), ((3, 5), "uint8"))
def integers_of_all_sizes(bb: Any, x: Any, y: Any, z: Any) -> Any:
    long = number(5_000_000_000, "int64")
    return relax.Tuple([
        R.multiply(x, long), R.astype(R.astype(y, "int32"), "int64"), R.astype(x, "uint8"),
        R.astype(z, "int8"), R.add(z, z), R.astype(y, "uint16"), R.max(x, axis=0),
    ])  # fmt: skip


@case(((3, 5), "bool"), ((3, 5), "float32"))
def truth(bb: Any, x: Any, y: Any) -> Any:
    positive = bb.emit(R.greater(y, number(0.0, "float32")))
    known = relax.const(np.array([True, False, True, True, False]))
    return relax.Tuple([
        R.logical_and(x, positive), R.logical_not(x), R.where(x, y, R.negative(y)),
        R.astype(x, "float32"), R.logical_or(x, known),
    ])  # fmt: skip


@case(((3, 8), "float32"), ((3, 8), "int32"))
def places(bb: Any, x: Any, y: Any) -> Any:
    return relax.Tuple([
        R.argmax(x, axis=1), R.argmin(x, axis=0, keepdims=True), R.argmax(y, axis=-1),
        R.argmax(x),
    ])  # fmt: skip


# ------------------------------------------------------------------------------ moves and forms


@case(((4,), "int64"), ((2, 3), "int32"))
def looked_up(bb: Any, at: Any, rows: Any) -> Any:
    inside = R.clip(R.astype(rows, "int64"), 0, 6)
    return relax.Tuple([
        R.take(real(7, 5), R.clip(at, 0, 6), axis=0),
        R.take(whole(7, 2), inside, axis=0),
        R.gather_elements(real(2, 7), inside, axis=1),
    ])  # fmt: skip


@case(((2, 6), "float32"), ((2, 3), "float32"))
def joined_and_split(bb: Any, x: Any, y: Any) -> Any:
    parts = bb.emit(R.split(R.concat([x, y], axis=1), [2, 5], axis=1))
    first, second, third = (bb.emit(relax.TupleGetItem(parts, at)) for at in range(3))
    return relax.Tuple([first, R.add(second, y), R.tile(third, (1, 2)), R.stack([y, second])])


@case(((2, 3, 4), "float32"))
def moved(bb: Any, x: Any) -> Any:
    return relax.Tuple([
        R.permute_dims(x, [2, 0, 1]), R.flip(x, 1), R.repeat(x, 2, 1), R.expand_dims(x, 0),
        R.nn.pad(x, [0, 0, 1, 1, 2, 0], "constant", 1.5), R.broadcast_to(x, (5, 2, 3, 4)),
        R.strided_slice(x, [1, 2], [0, 3], [3, -5], [2, -1]), R.tril(x), R.flatten(x),
    ])  # fmt: skip


@case([((2, 3), "float32"), [((3,), "float32"), ((2, 3), "int8")]])
def nested_tuples(bb: Any, x: Any) -> Any:
    left = bb.emit(relax.TupleGetItem(x, 0))
    right = bb.emit(relax.TupleGetItem(x, 1))
    row = bb.emit(relax.TupleGetItem(right, 0))
    byte = bb.emit(relax.TupleGetItem(right, 1))
    return relax.Tuple([relax.Tuple([R.add(left, row), byte]), relax.Tuple([relax.Tuple([left])])])


@case(((2, 3), "float32"))
def constants_as_results(bb: Any, x: Any) -> Any:
    extremes = relax.const(np.array([np.inf, -np.inf, -0.0, 1e-42, 3.4e38], "float32"))
    wide = relax.const(np.array([-(2**63), 2**63 - 1], "int64"))
    largest = relax.const(np.array([0, 2**64 - 1], "uint64"))
    truths = relax.const(np.array([True, False]))
    doubles = relax.const(np.array([0.1, -np.inf]))
    once = bb.emit(R.add(x, number(1.0, "float32")))
    return relax.Tuple([extremes, wide, largest, truths, doubles, x, once, once])


@case(((3, 8), "float32"), ((3, 2), "int64"), ((3, 2), "float32"), ((4,), "int32"))
def loops_without_blocks(bb: Any, x: Any, at: Any, new: Any, z: Any) -> Any:
    """What TVM writes as plain loops: scans and scatters."""
    scattered = R.scatter_elements(x, R.clip(at, 0, 7), new, 1)
    return relax.Tuple([R.cumsum(x, axis=1), scattered, R.cumsum(z, axis=0), R.cumprod(new, 0)])


@case(((2, 5), "float32"))
def infinities(bb: Any, x: Any) -> Any:
    masked = R.where(R.greater(x, number(0.0, "float32")), x, number(-np.inf, "float32"))
    bound = R.minimum(x, number(np.inf, "float32"))
    return relax.Tuple([R.nn.softmax(masked), bound, R.isinf(masked), R.isfinite(masked)])


@case(((8, 8), "float32"))
def own_prim_funcs(bb: Any, x: Any) -> Any:
    def scaled(tensor: Any) -> Any:
        return te.compute(tensor.shape, lambda i, j: tensor[j, i] * tvm.tirx.const(0.1, "float32"))

    first = bb.emit_te(scaled, x)
    return bb.emit_te(topi.nn.relu, bb.emit(R.matmul(first, real(8, 8))))


GROUPS: dict[str, tuple[str, ...]] = {
    "networks": ("mlp", "mlp_transposed", "conv_nchw", "conv_nhwc", "int8_qdq", "layer_norm",
                 "attention_written_out", "joined_and_split"),
    "convolutions": ("depthwise", "conv1d", "conv_transposed", "pooling", "batch_norm", "resized"),
    "sequences": ("attention", "lstm", "rms_norm", "group_norm", "transcendental", "reductions"),
    "integers": ("int8_products", "integer_arithmetic", "integers_of_all_sizes", "truth", "places",
                 "rounding", "doubles"),
    "forms": ("looked_up", "moved", "nested_tuples", "constants_as_results", "own_prim_funcs",
              "loops_without_blocks", "infinities"),
}  # fmt: skip
"""All functions, in the modules that tests compile."""
