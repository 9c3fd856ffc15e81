"""Quantizing a network by torchao's PT2E flow or for a target, and exporting it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import nn
from torchao.quantization.pt2e import MinMaxObserver, move_exported_model_to_eval
from torchao.quantization.pt2e.quantize_pt2e import (
    convert_pt2e,
    prepare_pt2e,
    prepare_qat_pt2e,
)

import htvm.torch
from benchmarks.torch_exports.networks import NETWORKS

_BATCHES, _STEPS = 16, 4


def _xnnpack(*, per_channel: bool, training: bool) -> Any:
    from torchao.testing.pt2e._xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )

    config = get_symmetric_quantization_config(is_per_channel=per_channel, is_qat=training)
    return XNNPACKQuantizer().set_global(config)


def _wide(*, scheme: torch.qscheme, training: bool) -> Any:
    from torchao.testing.pt2e._xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )

    config = get_symmetric_quantization_config(is_per_channel=True, is_qat=training)
    limits = torch.iinfo(torch.int16)
    activations = replace(
        config.input_activation,
        dtype=torch.int16,
        quant_min=limits.min,
        quant_max=limits.max,
        qscheme=scheme,
        observer_or_fake_quant_ctr=MinMaxObserver.with_args(eps=2**-20),
    )
    config = replace(config, input_activation=activations, output_activation=activations)
    return XNNPACKQuantizer().set_global(config)


def _x86(*, training: bool) -> Any:
    from torchao.quantization.pt2e.quantizer.x86_inductor_quantizer import (
        X86InductorQuantizer,
        get_default_x86_inductor_quantization_config,
    )

    config = get_default_x86_inductor_quantization_config(is_qat=training)
    return X86InductorQuantizer().set_global(config)


QUANTIZERS: Mapping[str, Callable[..., Any]] = {
    "xnnpack_tensor": partial(_xnnpack, per_channel=False),
    "xnnpack_channel": partial(_xnnpack, per_channel=True),
    "x86": _x86,
}
"""torchao's quantizers by name; each takes whether it is for training."""

WIDE: Mapping[str, Callable[..., Any]] = {
    "int16_symmetric": partial(_wide, scheme=torch.per_tensor_symmetric),
    "int16_affine": partial(_wide, scheme=torch.per_tensor_affine),
}
"""The same for activations of 16 bits, which are calibrated alone."""

TARGETS = ("cortex_m4", "diana.digital")
"""Targets whose quantizers are measured, too."""


def exported(
    network: str, quantizer: str, *, training: bool = False, seed: int = 0
) -> torch.export.ExportedProgram:
    """Return a network, quantized and exported.

    Args:
        network: one of `NETWORKS`.
        quantizer: one of `QUANTIZERS`, `WIDE` or `TARGETS`.
        training: whether it is trained for some steps with fake quantizers, instead of calibrated.
        seed: of weights, and of the inputs that it is calibrated or trained with.
    """
    warnings.filterwarnings("ignore")
    torch.manual_seed(seed)
    entry = NETWORKS[network]
    module, inputs = entry.make(), tuple(torch.randn(shape) for shape in entry.shapes)
    for part in module.modules():
        if isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d):
            assert part.running_mean is not None and part.running_var is not None
            part.running_mean.normal_(0, 0.2)
            part.running_var.uniform_(0.5, 2)
    # torch's attention has a fused path in eval mode, which exports do not take.
    torch.backends.mha.set_fastpath_enabled(False)
    module.train(training)
    ours = quantizer in TARGETS
    if ours:
        prepared = htvm.torch.prepare(module, inputs, quantizer, training=training)
    else:
        graph = torch.export.export(module, inputs).module(check_guards=False)
        prepare = prepare_qat_pt2e if training else prepare_pt2e
        prepared = prepare(graph, {**QUANTIZERS, **WIDE}[quantizer](training=training))
    if training:
        _train(prepared, entry.shapes)
        if not ours:
            move_exported_model_to_eval(prepared)
    else:
        for _ in range(_BATCHES):
            prepared(*(torch.randn(shape) for shape in entry.shapes))
    if ours:
        return htvm.torch.export(htvm.torch.convert(prepared))
    return torch.export.export(convert_pt2e(prepared), inputs)


def _train(prepared: nn.Module, shapes: tuple[tuple[int, ...], ...]) -> None:
    """Train some steps towards nothing in particular: only the form of the result matters."""
    steps = torch.optim.SGD(prepared.parameters(), lr=1e-3)
    for _ in range(_STEPS):
        loss = prepared(*(torch.randn(shape) for shape in shapes)).square().mean()
        steps.zero_grad()
        loss.backward()
        steps.step()
