"""C of a region that the device assembles at start-up (``assembly="late"``).

The JSON and the weights of the region are constants, and files beside the C in exports.  Tensors
are parameters of every layer, also if they stay in SRAM on this design: on another one they may
not, and the same C and JSON run there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from byoc_dory.emit.symbols import part_name
from byoc_dory.emit.text import environment
from byoc_dory.region import Constant, Kernel, Region
from byoc_dory.soc.dla.assemble import Stream
from byoc_dory.soc.dla.design import Design
from byoc_dory.soc.dla.late import arena_bytes
from byoc_dory.soc.dla.region_file import RegionFile

_ENVIRONMENT = environment("byoc_dory.soc.dla")


@dataclass(frozen=True)
class _Late:
    """A region's name in C, and its two constants."""

    name: str
    json: Constant
    weights: Constant


def late_kernels(
    region: Region,
    file: RegionFile,
    weights: bytes,
    stream: Stream,
    design: Design,
    kernels: Sequence[Kernel],
    symbol: Callable[[str], str],
    sram: int | None,
) -> tuple[Kernel, ...]:
    """Return the kernels of a region that is assembled late.

    Args:
        region, file, weights: the region, as layers and as its two files.
        stream: the stream that this design will have, for the size of the arena.
        design: numbers of the accelerator.
        kernels: the kernels as they are ahead of time.
        symbol: makes C names.
        sram: bytes of SRAM that may be used; None for all that the device has.
    """
    name = symbol(f"{region.name}_region")
    text = msgspec.json.format(msgspec.json.encode(file), indent=1) + b"\n"
    late = _Late(
        name,
        Constant(part_name(name, "json"), np.frombuffer(text, np.uint8), f"{region.name} as JSON",
                 file=f"{name}.json"),
        Constant(part_name(name, "weights"), np.frombuffer(weights or b"\0", np.uint8),
                 f"weights and biases of {region.name}", file=f"{name}.bin"),
    )  # fmt: skip
    bytes_ = -(-arena_bytes(file, stream) // 8) * 8
    head = _ENVIRONMENT.get_template("late.c.jinja").render(
        region=region.name,
        name=name,
        bytes=bytes_,
        sram="HTVM_L1_SIZE" if sram is None else f"{sram}u",
        resident=int(design.resident),
        json_bytes=f"{len(text)}u",
        weights_bytes=f"{len(weights)}u",
    )
    made = [_kernel(kernel, file, late, number) for number, kernel in enumerate(kernels)]
    return (replace(made[0], source=head + made[0].source), *made[1:])


def _kernel(kernel: Kernel, file: RegionFile, late: _Late, number: int) -> Kernel:
    layer, plan = kernel.layer, kernel.plan
    assert layer is not None and plan is not None
    entry = file.layers[number]
    block = file.block_bytes(entry)
    slots = [f"{late.weights.name} + {entry.weights}" if block else "NULL"]
    slots += [f"in{place}" for place in range(len(layer.inputs))]
    slots += ["NULL"] * (3 - len(slots))
    arguments = [f"const int8_t *in{place}" for place in range(len(layer.inputs))]
    signature = f"int32_t {kernel.symbol}({', '.join(arguments)}, int8_t *out)"
    text = _ENVIRONMENT.get_template("late_layer.c.jinja").render(
        layer=layer,
        tile=plan.solution.tile,
        signature=signature,
        slots=[*slots, "out"],
        name=late.name,
        number=number,
    )
    return replace(
        kernel,
        source=text,
        prototype=f"{signature};",
        inputs=tuple(tensor.name for tensor in layer.inputs),
        outputs=(layer.output.name,),
        constants=(late.json, late.weights),
    )
