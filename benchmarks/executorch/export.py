"""MLPerf Tiny's networks as ExecuTorch's examples define them, quantized and exported by it.

    PYTHON -m benchmarks.executorch.export FOLDER CORE

PYTHON is that of an environment with torch, torchao and ExecuTorch.  Weights are random (seed 0),
the statistics of batch norms those of random inputs.  For each network the folder gets the program
as torch exports it (``NAME.pt2``), as ExecuTorch lowers it for a core (``NAME.pte``), an input and
the output of torch's quantized module (``NAME.npz``), and what a firmware needs to know of the
program (``NAME.json``).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from executorch.backends.cortex_m.edge_compile_config import cortex_m_edge_compile_config
from executorch.backends.cortex_m.passes.cortex_m_pass_manager import CortexMPassManager
from executorch.backends.cortex_m.quantizer.quantizer import CortexMQuantizer
from executorch.backends.cortex_m.target_config import CortexMTargetConfig
from executorch.examples.models.mlperf_tiny.deep_autoencoder import DeepAutoEncoder
from executorch.examples.models.mlperf_tiny.ds_cnn import DSCNNKWS
from executorch.examples.models.mlperf_tiny.mobilenet_v1_025 import MobileNetV1025
from executorch.examples.models.mlperf_tiny.resnet8 import ResNet8
from executorch.exir import to_edge

NETWORKS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "resnet8": (ResNet8, (3, 32, 32)),
    "ds_cnn": (DSCNNKWS, (1, 49, 10)),
    "mobilenet_v1": (MobileNetV1025, (3, 96, 96)),
    "autoencoder": (DeepAutoEncoder, (640,)),
}
"""Name -> the network's class, the shape of its input without the batch."""

_BATCHES, _SAMPLES = 20, 8


def main(folder: Path, core: str) -> None:
    """Export all networks into a folder for a core, such as ``cortex-m4``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (network, shape) in NETWORKS.items():
        export(name, network, shape, folder, core)


def export(name: str, network: Any, shape: tuple[int, ...], folder: Path, core: str) -> None:
    """Export one network."""
    torch.manual_seed(0)
    layout = torch.channels_last if len(shape) == 3 else torch.contiguous_format

    def inputs(number: int) -> torch.Tensor:
        return (torch.rand(number, *shape) * 2 - 1).to(memory_format=layout)

    module = network().train()
    with torch.no_grad():
        for _ in range(_BATCHES):
            module(inputs(16))
    module = module.eval().to(memory_format=layout)
    samples = [inputs(1) for _ in range(_SAMPLES)]
    example = (samples[0],)
    prepared = prepare_pt2e(
        torch.export.export(module, example).module(check_guards=False), CortexMQuantizer()
    )
    for sample in samples:
        prepared(sample)
    converted = convert_pt2e(prepared)
    program = torch.export.export(converted, example)
    torch.export.save(program, folder / f"{name}.pt2")
    wanted = converted(samples[0]).detach().numpy()
    np.savez(folder / f"{name}.npz", given=samples[0].numpy(), wanted=wanted)

    edge = to_edge(program, compile_config=cortex_m_edge_compile_config())
    target = CortexMTargetConfig.from_target_string(core)
    passes = CortexMPassManager(edge.exported_program(), target_config=target)
    edge._edge_programs["forward"] = passes.transform()
    made = edge.to_executorch()
    (folder / f"{name}.pte").write_bytes(made.buffer)
    [plan] = made.executorch_program.execution_plan
    known = {
        "operators": [f"{each.name}.{each.overload}" for each in plan.operators],
        "planned": plan.non_const_buffer_sizes[1],
        "steps": len(plan.chains[0].instructions),
    }
    (folder / f"{name}.json").write_text(json.dumps(known))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
