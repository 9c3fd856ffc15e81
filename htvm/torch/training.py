"""`prepare` and `convert`: from a module in reals to one whose numbers a target computes with."""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence
from functools import partial
from types import MethodType
from typing import Any

import torch
from torchao.quantization.pt2e import (
    disable_observer,
    enable_observer,
    move_exported_model_to_eval,
    move_exported_model_to_train,
)
from torchao.quantization.pt2e.quantize_pt2e import (
    convert_pt2e,
    prepare_pt2e,
    prepare_qat_pt2e,
)
from torchao.quantization.pt2e.utils import _fuse_conv_bn_, _fuse_linear_bn_

from byoc_dory.errors import InputError, ModelError, first_line
from byoc_dory.layers import Array
from byoc_dory.soc.base import Target
from htvm.public import public
from htvm.torch.constants import fold_buffers
from htvm.torch.observers import Derived
from htvm.torch.quantizer import Quantizer
from htvm.torch.recurrent import unroll

TARGET_BUFFER = "htvm_target"
"""Name of the buffer of a converted module with the name of its quantizer's target, in UTF-8."""

_FROZEN = "htvm_frozen"

_log = logging.getLogger(__name__)


@public
def prepare(
    module: Any,
    example_inputs: Sequence[Any],
    target: str | Target,
    *,
    training: bool = False,
    weight_bits: int = 8,
    noise: float = 0.0,
) -> Any:
    """Prepare a module for a target: to be calibrated, or trained further in the target's numbers.

    Batch norms are folded into the layers before them first, so that the biases that are trained
    are those that are written; LSTM and GRU layers are written out, step by step. Run inputs
    through the result to calibrate it; for training use it like any module, and `freeze_scales` for
    the last epochs. In evaluation (``.eval()``), scales stay, and it computes what its converted
    module will.

    Args:
        module: a ``torch.nn.Module`` in reals, which is not changed; trained already, as a rule.
        example_inputs: its inputs, the batch first.
        target: a target's name, or what `htvm.soc` returns.
        training: whether it will be trained, with gradients straight through the rounding.
        weight_bits: bits of the weights, 2 to 8.
        noise: standard deviation of an analog core's noise in training (see `Quantizer`).

    Returns:
        A module that takes batches of any size, if the code of ``module`` does.

    Raises:
        ModelError: torch cannot export the module.
        TargetError, InputError: as for `Quantizer`; or there are no inputs.
    """
    quantizer = Quantizer(target, training=training, weight_bits=weight_bits, noise=noise)
    exported = _exported(module, tuple(example_inputs))
    fold_buffers(exported)
    _fuse_conv_bn_(exported)
    _fuse_linear_bn_(exported)
    prepared = (prepare_qat_pt2e if training else prepare_pt2e)(exported, quantizer)
    _delay_biases(prepared)
    name = torch.tensor(list(quantizer.arithmetic.target.encode()), dtype=torch.uint8)
    prepared.register_buffer(TARGET_BUFFER, name)
    if training:
        prepared.train = MethodType(_switch, prepared)
        prepared.eval = MethodType(partial(_switch, mode=False), prepared)
        prepared.train()
    return prepared


@public
def freeze_scales(prepared: Any) -> None:
    """Leave the scales of a prepared module as they are: for the last epochs of its training."""
    prepared.register_buffer(_FROZEN, torch.tensor(True))
    prepared.apply(disable_observer)


def _switch(prepared: Any, mode: bool = True) -> Any:
    """Switch between training and evaluation; graphs of torchao do not by themselves."""
    (move_exported_model_to_train if mode else move_exported_model_to_eval)(prepared)
    torch.nn.Module.train(prepared, mode)
    observes = mode and not hasattr(prepared, _FROZEN)
    return prepared.apply(enable_observer if observes else disable_observer)


@public
def convert(prepared: Any) -> Any:
    """Return the module of integers that a prepared module became.

    Its results are those of the prepared module in evaluation. The prepared module stays as it is.

    Args:
        prepared: from `prepare`, calibrated or trained.

    Raises:
        ModelError: it is not from `prepare`.
        InputError: no data went through it.
    """
    if not hasattr(prepared, TARGET_BUFFER):
        raise ModelError(
            f"a {type(prepared).__name__} that was not prepared",
            where="htvm.torch.convert",
            hint="give what htvm.torch.prepare returned",
        )
    copied = copy.deepcopy(prepared)
    move_exported_model_to_eval(copied)
    converted = convert_pt2e(copied)
    # Buffers that no operator reads are lost on the way.
    converted.register_buffer(TARGET_BUFFER, getattr(prepared, TARGET_BUFFER).clone())
    return converted


@public
def export(converted: Any) -> Any:
    """Return the program of a converted module, for one input: for `htvm.build`, or for a file.

    ``torch.export.save(program, "net.pt2")`` writes it, and `htvm.load` reads that without torch.

    Args:
        converted: from `convert`, or from torchao's ``convert_pt2e``.

    Raises:
        ModelError: it is no converted module, or torch cannot export it.
    """
    if not is_converted(converted):
        raise ModelError(
            f"a {type(converted).__name__} that is not quantized",
            where="htvm.torch.export",
            hint="give what htvm.torch.convert returned",
        )
    example = []
    for node in converted.graph.nodes:
        if node.op == "placeholder":
            tensor = node.meta["val"]
            sizes = [size if isinstance(size, int) else 1 for size in tensor.shape]
            example.append(torch.zeros(sizes, dtype=tensor.dtype))
    return _program(converted, tuple(example), None)


def quantized_program(module: Any, samples: Sequence[Array], target: str | Target) -> Any:
    """Return the program of a module that was calibrated, for one input.

    Args:
        module: in reals, as for `prepare`.
        samples: for each input, arrays ``[N, 1, ...]``.
        target: as for `prepare`.

    Raises:
        ModelError, TargetError: as of `prepare` and `export`.
    """
    tensors = [torch.from_numpy(each) for each in samples]
    prepared = prepare(module, [each[0] for each in tensors], target)
    with torch.no_grad():
        for sample in zip(*tensors, strict=True):
            prepared(*sample)
    return export(convert(prepared))


def is_converted(module: Any) -> bool:
    """Whether a module quantizes what it computes."""
    return isinstance(module, torch.fx.GraphModule) and any(
        "quantize_per" in str(node.target) or "quantize_affine" in str(node.target)
        for node in module.graph.nodes
    )


def _delay_biases(prepared: Any) -> None:
    """Let biases take their value right before their layers, when the scales are those of the pass.

    torchao observes constants before everything else.
    """
    for node in list(prepared.graph.nodes):
        is_derived = node.op == "call_module" and isinstance(
            prepared.get_submodule(node.target), Derived
        )
        if is_derived:
            next(iter(node.users)).prepend(node)
    prepared.recompile()


def _exported(module: Any, example_inputs: tuple[Any, ...]) -> Any:
    """Return a module's graph, in evaluation, for batches of any size if possible."""
    if not isinstance(module, torch.nn.Module):
        raise ModelError(
            f"a {type(module).__name__} is no module of torch",
            where="htvm.torch.prepare",
            hint="give a torch.nn.Module",
        )
    if not example_inputs or not all(isinstance(each, torch.Tensor) for each in example_inputs):
        raise InputError(
            "example inputs are tensors, at least one",
            where="htvm.torch.prepare",
            hint="give a tuple, such as (x,)",
        )
    copied = copy.deepcopy(module)
    if not isinstance(module, torch.fx.GraphModule):  # which is what it was exported as
        copied = unroll(copied.eval())
    # A batch of one would be taken as a size that never changes.
    batches = tuple(
        each.repeat(2, *[1] * (each.ndim - 1)) if each.ndim and len(each) == 1 else each
        for each in example_inputs
    )
    open_batch = tuple({0: torch.export.Dim.AUTO} if each.ndim else None for each in batches)
    try:
        program = _program(copied, batches, open_batch)
        if _has_open_batch(program):
            return program.module(check_guards=False)
    except ModelError as error:
        _log.info("the batch stays that of the example: %s", error)
    return _program(copied, example_inputs, None).module(check_guards=False)


def _has_open_batch(program: Any) -> bool:
    inputs = [node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"]
    given = inputs[len(inputs) - len(program.graph_signature.user_inputs) :]
    return all(not each.ndim or isinstance(each.shape[0], torch.SymInt) for each in given)


def _program(module: Any, inputs: tuple[Any, ...], dynamic_shapes: Any) -> Any:
    try:
        with torch.no_grad():
            return torch.export.export(module, inputs, dynamic_shapes=dynamic_shapes)
    except Exception as error:
        raise ModelError(
            f"torch cannot export the module: {first_line(error)}",
            where="htvm.torch.prepare",
            hint="see what torch.export.export says about it",
        ) from error
