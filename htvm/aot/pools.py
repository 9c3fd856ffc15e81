"""Pools that read the result of a region in the accelerators' layout, without its conversion.

A result that only an average over whole maps reads need not leave the accelerators' layout: the
host sums each channel where it is, which takes less time than its conversion alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from byoc_dory.emit.layout import Average, TensorLayout
from htvm.aot.steps import Alias, CpuKernel, ModelCall
from patterns.ops.tflite.averages import AverageOfSums

if TYPE_CHECKING:
    from byoc_dory.region import Kernel, RegionCode
    from htvm.aot.assembler import Assembly
    from patterns.reading.graph import Graph


def with_pools_inside(
    assembly: Assembly, graph: Graph, layout_of: Callable[[RegionCode], TensorLayout]
) -> Assembly:
    """Return the program with averages over whole maps in place of conversions that precede them.

    Args:
        assembly: what the program is assembled from.
        graph: the operators of its model.
        layout_of: returns the layout of tensors inside a region.
    """
    for pool, kernel in _pools(assembly):
        found = _inside(assembly, graph, pool, kernel, layout_of)
        if found is not None:
            assembly = found
    return assembly


def _pools(assembly: Assembly) -> Iterator[tuple[ModelCall, CpuKernel]]:
    """Yield the calls of kernels that compute a single operator of a single tensor."""
    kernels = {kernel.symbol: kernel for kernel in assembly.cpu_kernels}
    times = Counter(call.target for call in assembly.calls if isinstance(call, ModelCall))
    for call in assembly.calls:
        kernel = kernels.get(call.target) if isinstance(call, ModelCall) else None
        if kernel is None or times[kernel.symbol] > 1 or len(kernel.layers) != 1:
            continue
        assert isinstance(call, ModelCall)
        if (len(call.inputs), len(call.outputs), len(kernel.operators)) == (1, 1, 1):
            yield call, kernel


def _inside(
    assembly: Assembly,
    graph: Graph,
    pool: ModelCall,
    kernel: CpuKernel,
    layout_of: Callable[[RegionCode], TensorLayout],
) -> Assembly | None:
    """Return the program in which the region before a pool ends with it; ``None`` for no change."""
    (source,) = pool.inputs
    node = graph.nodes.get(kernel.layers[0])
    op = None if node is None else node.op.of_sums([kind for _, kind in node.read], node.result)
    writer = _writer(assembly, source)
    if writer is None or not isinstance(op, AverageOfSums) or not _only_read_by(assembly, pool):
        return None
    code = assembly.regions[writer.target]
    at = [value.name for value in writer.outputs].index(source)
    tensor = code.outputs[at]
    epilogue = next((each for each in code.kernels if each.outputs == (tensor.name,)), None)
    if epilogue is None or epilogue.kind != "epilogue":
        return None
    average = Average(
        name=kernel.layers[0],
        tensor=tensor,
        symbol=kernel.symbol,
        source=epilogue.inputs[0],
        clip=op.clip,
        least=_least(code, tensor.name),
    )
    made = layout_of(code).average(average)
    if made is None:
        return None
    region = _ending_with(code, at, average, epilogue, made)
    call = replace(
        writer,
        outputs=tuple(
            pool.outputs[0] if value.name == source else value for value in writer.outputs
        ),
    )
    return replace(
        assembly,
        calls=[call if each is writer else each for each in assembly.calls if each is not pool],
        cpu_kernels=[each for each in assembly.cpu_kernels if each is not kernel],
        regions={**assembly.regions, writer.target: region},
    )


def _ending_with(
    code: RegionCode, at: int, average: Average, epilogue: Kernel, made: Kernel
) -> RegionCode:
    """Return a region whose output ``at`` is an average, in place of the tensor averaged."""
    outputs = list(code.outputs)
    outputs[at] = average.result
    return replace(
        code,
        outputs=tuple(outputs),
        kernels=tuple(made if kernel is epilogue else kernel for kernel in code.kernels),
    )


def _writer(assembly: Assembly, tensor: str) -> ModelCall | None:
    """Return the call of a region that writes a tensor; ``None`` if there is none."""
    for call in assembly.calls:
        if isinstance(call, ModelCall) and call.target in assembly.regions:
            if any(value.name == tensor for value in call.outputs):
                return call
    return None


def _only_read_by(assembly: Assembly, reader: ModelCall) -> bool:
    """Whether nothing else reads what a call reads."""
    (tensor,) = reader.inputs
    if tensor in assembly.results:
        return False
    for call in assembly.calls:
        read = (call.source,) if isinstance(call, Alias) else call.inputs
        if tensor in read and call is not reader:
            return False
    return True


def _least(code: RegionCode, tensor: str) -> int:
    """Return the least value that a region's result may have."""
    layers: Mapping[str, Kernel] = {
        kernel.layer.output.name: kernel for kernel in code.kernels if kernel.layer is not None
    }
    found = layers[tensor].layer if tensor in layers else None
    return -128 if found is None else found.clip[0]
