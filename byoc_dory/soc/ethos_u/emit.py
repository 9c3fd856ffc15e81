"""C of a region: a function for each of Vela's programs, which calls Arm's driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256

import numpy as np

from byoc_dory.emit.text import part_name, rendered
from byoc_dory.errors import TilingError
from byoc_dory.layers import Layer
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan, RegionPlan, plan_alone
from byoc_dory.region import Buffer, Constant, Kernel, Region, RegionKernels
from byoc_dory.soc.base import Soc, round_up
from byoc_dory.soc.ethos_u.core import EthosUCore
from byoc_dory.soc.ethos_u.lower import Network, networks
from byoc_dory.soc.ethos_u.vela import Compiled, compiled_thriftily
from byoc_dory.tiling.problem import solution_of

NO_DRIVER, FAILED, MISALIGNED, FOREIGN = 0x4E01, 0x4E02, 0x4E03, 0x4E04
"""What a function returns if no driver is free, the driver failed, commands or weights are
misaligned, or they are not the function's own."""

_ALIGNMENT = 16
_LINE = 32
"""Bytes of a cache line of the cores beside the accelerator (``htvm_cache.h``)."""


@dataclass(frozen=True)
class EthosUEmitter:
    """Lets Vela compile regions."""

    core: EthosUCore
    soc: Soc
    headers: tuple[str, ...] = ("string.h", "ethosu_driver.h", "htvm_cache.h")

    def region(
        self, region: Region, options: TilingOptions, symbol: Callable[[str], str]
    ) -> RegionKernels:
        """Return a kernel for each of Vela's programs, and the region's plan.

        Raises:
            LimitError: Vela takes too long, or too much memory.
            TargetError: Vela is not installed, or refuses a network.
            TilingError: the memory between layers exceeds what may be used of it.
        """
        results = [tensor.name for tensor in region.outputs]
        settings = self.core.settings(self.soc, options)
        limit = self.core.budget(self.soc, options)
        kernels, buffers, staying, tags = [], [], [], {}
        peak = cycles = fast = 0
        fast_name = ""
        for network in networks(region.layers, results):
            made = compiled_thriftily(network, settings)
            if made.scratch > limit:
                raise TilingError(
                    f"{region.name} needs {made.scratch} B between its layers, {limit} B may be "
                    "used",
                    where=f"layer '{network.layers[-1].name}'",
                    hint="give as much, or leave layers to the CPU by a policy",
                    limit=limit,
                    smallest=made.scratch,
                )
            if made.fast > settings.memories.fast:
                raise TilingError(
                    f"{region.name} needs {made.fast} B of the NPU's own SRAM, there are "
                    f"{settings.memories.fast} B",
                    where=f"layer '{network.layers[-1].name}'",
                    hint=f"give fast={round_up(made.fast, _ALIGNMENT)}, or leave layers to the CPU",
                    limit=settings.memories.fast,
                    smallest=made.fast,
                )
            name = network.layers[-1].name
            # Lines of a cache, from the first one in the buffer on, which begins at _ALIGNMENT.
            lines = round_up(max(made.scratch, _ALIGNMENT), _LINE)
            buffer = Buffer(f"{name}.scratch", lines + _LINE - _ALIGNMENT)
            own = symbol(name)
            fast_name = fast_name or part_name(own, "fast")
            kernels.append(self._kernel(network, made, own, buffer.name, fast_name))
            tags[own] = _tag(made)
            buffers.append(buffer)
            outputs = {tensor.name for tensor in network.outputs}
            staying += [e.output.name for e in network.layers if e.output.name not in outputs]
            peak, cycles = max(peak, made.scratch), cycles + made.cycles
            fast = max(fast, made.fast)
        ready = part_name(kernels[0].symbol, "ready")
        source = _ready(ready, tags) + "\n" + kernels[0].source
        if fast:
            source = _fast_memory(fast_name, fast) + source
        kernels[0] = replace(kernels[0], source=source, ready=ready)
        plan = RegionPlan(
            layers=tuple(self._plan(layer, options) for layer in region.layers),
            resident=tuple(staying),
            l1_limit=limit,
            l1_peak=peak,
            l1_live=peak,
            l1_used=tuple(buffer.bytes for buffer in buffers),
            cycles=cycles,
            cycles_alone=cycles,
            bound=cycles,
            method="Vela",
        )
        return RegionKernels(tuple(kernels), plan, tuple(buffers))

    def _plan(self, layer: Layer, options: TilingOptions) -> LayerPlan:
        problem = self.core.tiling_problem(self.soc, layer, options)
        return plan_alone(layer, solution_of(problem, problem.smallest), self.core.name, problem)

    def _kernel(
        self, network: Network, made: Compiled, symbol: str, scratch: str, fast: str
    ) -> Kernel:
        payload, weights = part_name(symbol, "commands"), part_name(symbol, "weights")
        first, last = network.layers[0].name, network.layers[-1].name
        what = first if first == last else f"{first} to {last}"
        given = [f"in{number}" for number in range(len(network.inputs))]
        several = len(network.outputs) > 1
        returned = [f"out{n}" if several else "out" for n in range(len(network.outputs))]
        arguments = [
            f"const {tensor.dtype}_t *{name}"
            for name, tensor in zip(given, network.inputs, strict=True)
        ]
        arguments += [
            f"{tensor.dtype}_t *{name}"
            for name, tensor in zip(returned, network.outputs, strict=True)
        ]
        arguments.append("int8_t *room")
        signature = f"int32_t {symbol}({', '.join(arguments)})"
        # The largest may lie where it goes, so it is moved before others are written there.
        inputs = sorted(zip(given, made.inputs, strict=True), key=lambda each: -each[1].size)
        read = network.inputs[given.index(inputs[0][0])].name
        over = ((scratch, read), *(((network.outputs[0].name, scratch),) * (not several)))
        tag = _tag(made)
        head = tag + bytes(_ALIGNMENT - len(tag))
        text = rendered(
            "byoc_dory.soc.ethos_u",
            "region.c.jinja",
            what=what,
            operators=made.operators,
            signature=signature,
            payload=payload,
            payload_bytes=len(made.payload),
            weights=weights,
            weights_bytes=len(made.weights) or _ALIGNMENT,
            scratch_bytes=made.scratch,
            fast=fast if made.fast else "",
            fast_bytes=made.fast,
            head=len(head),
            inputs=inputs,
            outputs=list(zip(returned, made.outputs, strict=True)),
            no_driver=f"0x{NO_DRIVER:X}",
            failed=f"0x{FAILED:X}",
        )
        commands = np.frombuffer(head + made.payload, np.uint8)
        data = np.frombuffer(head + (made.weights or bytes(_ALIGNMENT)), np.uint8)
        return Kernel(
            symbol=symbol,
            layer_name=last,
            kind="layer",
            source=text,
            prototype=f"{signature};",
            inputs=tuple(tensor.name for tensor in network.inputs),
            outputs=(*(tensor.name for tensor in network.outputs), scratch),
            constants=(
                Constant(payload, commands, f"checksum; what the driver is given for {what}"),
                Constant(weights, data, f"checksum; weights, scales and tables of {what}"),
            ),
            layer=None,
            plan=None,
            program=None,
            predicted_cycles=made.cycles,
            accelerator=self.core.name,
            together=network.layers,
            shares=made.shares,
            accesses=made.traffic,
            over=over,
        )


def _ready(symbol: str, tags: Mapping[str, bytes]) -> str:
    """Return the function that says whether programs, given by symbol, have what is theirs."""
    return rendered(
        "byoc_dory.soc.ethos_u",
        "ready.c.jinja",
        symbol=symbol,
        programs=[
            {
                "commands": part_name(program, "commands"),
                "weights": part_name(program, "weights"),
                "tag": ", ".join(f"0x{byte:02X}" for byte in tag),
            }
            for program, tag in tags.items()
        ],
        misaligned=f"0x{MISALIGNED:X}",
        foreign=f"0x{FOREIGN:X}",
    )


def _fast_memory(name: str, size: int) -> str:
    """Return the definition of the accelerator's own SRAM, which a region's programs share.

    Arm's driver takes the memory that it was registered with instead, if there is one.
    """
    return (
        "#ifndef HTVM_ETHOS_U_FAST\n"
        "#define HTVM_ETHOS_U_FAST /* places it in SRAM that the accelerator alone uses */\n"
        "#endif\n"
        f"static _Alignas({_ALIGNMENT}) int8_t {name}[{size}] HTVM_ETHOS_U_FAST;\n\n"
    )


def _tag(made: Compiled) -> bytes:
    """Return four bytes that tell a program from others: of all that must belong together."""
    places = repr((made.scratch, made.fast, made.inputs, made.outputs)).encode()
    return sha256(made.payload + made.weights + places).digest()[:4]
