"""Operators of torch that compute as the Integer Transformer Accelerator and its cores do.

Operands and results are reals on the grids of their quantizations; inside, everything is integers.
``numbers`` is what the scales around an operator leave to choose (`htvm.torch.transformers`); while
it is all zeros, as before anything is known of the scales, the operator computes in reals.
Gradients are those of the reals.  Results are not cut off: the quantization behind does that.

`byoc_dory.layers.rowwise` has the formulas.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as functional

INT8 = (-128, 127)
_ONE = 256  # what a row's maximum adds to its sum


def softmax_in_integers(x: Any, group: int, step_bits: int, numerator: int) -> Any:
    """Return `byoc_dory.layers.ItaSoftmax` of the last axis of int64 scores: int64, 0 to 255."""
    half = (1 << step_bits) >> 1
    width = group or x.shape[-1]
    largest = torch.full_like(x[..., :1], INT8[0])
    total = torch.zeros_like(largest)
    for first in range(0, x.shape[-1], width):
        part = x[..., first : first + width]
        larger = torch.maximum(largest, part.amax(-1, keepdim=True))
        terms = _ONE >> ((larger - part + half) >> step_bits).clamp(max=31)
        total = (total >> ((larger - largest + half) >> step_bits).clamp(max=31)) + terms.sum(
            -1, keepdim=True
        )
        largest = larger
    inverse = numerator // total
    return inverse >> ((largest - x + half) >> step_bits).clamp(max=31)


def ita_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    numbers: torch.Tensor,
    softmax: list[int],
    scale: float,
) -> torch.Tensor:
    """Return the context of queries, ``[..., S, P]``.

    Args:
        query, key, value: ``[..., S, P]``.
        numbers: scales of query, key, value and result; multiplier and shift of the scores, and of
            the context.
        softmax: group, step bits and numerator of `byoc_dory.layers.ItaSoftmax`.
        scale: factor of the scores in reals.
    """
    if not numbers.any():
        return _attention(query, key, value, scale)
    steps, factors = numbers[:4].double(), [int(number) for number in numbers[4:].tolist()]
    q, k, v = (
        torch.round(each.double() / step)
        for each, step in zip((query, key, value), steps, strict=False)
    )
    # Sums of float64 are exact.
    scores = _scaled((q @ k.transpose(-1, -2)).long(), *factors[:2]).clamp(*INT8)
    weights = softmax_in_integers(scores, *softmax)
    context = _scaled((weights.double() @ v).long(), *factors[2:])
    return (context * steps[3]).to(query.dtype)


def ita_gelu(x: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    """Return the negative of the GELU of each element.

    Args:
        x: operand.
        numbers: scales of operand and result; ``b``, ``c``, ``mul`` and ``shift`` of
            `byoc_dory.layers.ItaGelu`.
    """
    if not numbers.any():
        return -functional.gelu(x)
    step, result = numbers[:2].double()
    b, c, mul, shift = (int(number) for number in numbers[2:].tolist())
    q = torch.round(x.double() / step).long().clamp(min=-127)
    e = torch.sign(q) * ((q.abs().clamp(max=-b) + b) ** 2 + c)
    return (_scaled(q * (e + c), mul, shift) * result).to(x.dtype)


def integer_layer_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, numbers: torch.Tensor, eps: float
) -> torch.Tensor:
    """Return each row of the last axis, normalized.

    Args:
        x: ``[..., n]``.
        weight, bias: ``[n]``, which are rounded to ``2**-shift`` steps of the result.
        numbers: scales of operand and result, and ``shift`` of `byoc_dory.layers.LayerNorm`.
        eps: of the norm in reals; the integers' own is a squared step.
    """
    if not numbers.any():
        return functional.layer_norm(x, x.shape[-1:], weight, bias, eps)
    step, result = numbers[:2].double()
    shift, count = int(numbers[2]), x.shape[-1]
    q = torch.round(x.double() / step).long()
    factors, summands = (
        torch.round(each.double() * 2.0**shift / result).long() for each in (weight, bias)
    )
    centred = q - torch.div(q.sum(-1, keepdim=True), count, rounding_mode="trunc")
    variance = (centred**2).sum(-1, keepdim=True) // count + 1
    root = torch.sqrt(variance.double()).floor().long()  # exact: far below 2**52
    scaled = torch.div(centred * factors, root, rounding_mode="trunc") + summands
    return (_rounded(scaled, shift) * result).to(x.dtype)


def _scaled(sums: Any, multiplier: int, shift: int) -> Any:
    return _rounded(sums * multiplier, shift)


def _rounded(values: Any, shift: int) -> Any:
    """Return ``values / 2**shift``, halves rounded up."""
    return (values + ((1 << shift) >> 1)) >> shift


def _attention(query: Any, key: Any, value: Any, scale: float) -> Any:
    return torch.softmax(query @ key.transpose(-1, -2) * scale, -1) @ value


# ------------------------------------------------------------------------------ in torch's terms


def _register(
    operator: Callable[..., Any], shape: Callable[..., Any], tensors: int, real: Callable[..., Any]
) -> None:
    """Make a function an operator of torch, ``torch.ops.htvm``, with the gradients of another.

    Args:
        operator: the function.
        shape: returns an empty result for its arguments.
        tensors: how many of its first arguments have gradients.
        real: function of reals of these, and of the arguments behind ``numbers``.
    """

    def keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(*inputs[:tensors])
        ctx.others = inputs[tensors + 1 :]

    def backward(ctx: Any, gradient: Any) -> tuple[Any, ...]:
        with torch.enable_grad():
            read = [each.detach().requires_grad_() for each in ctx.saved_tensors]
            found = torch.autograd.grad(real(*read, *ctx.others), read, gradient)
        return (*found, None, *(None for _ in ctx.others))

    made = torch.library.custom_op(f"htvm::{operator.__name__}", operator, mutates_args=())
    made.register_fake(shape)
    made.register_autograd(backward, setup_context=keep)


_register(
    ita_attention,
    lambda query, key, value, *_: query.new_empty((*query.shape[:-1], value.shape[-1])),
    3,
    lambda query, key, value, softmax, scale: _attention(query, key, value, scale),
)
_register(ita_gelu, lambda x, _: torch.empty_like(x), 1, lambda x: -functional.gelu(x))
_register(
    integer_layer_norm,
    lambda x, *_: torch.empty_like(x),
    3,
    lambda x, weight, bias, eps: functional.layer_norm(x, x.shape[-1:], weight, bias, eps),
)
