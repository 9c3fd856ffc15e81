"""`Model`: a quantized network in the integer form, with the interface of its source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from byoc_dory.emit.text import c_identifier
from htvm.public import public

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tvm.ir import IRModule

    from byoc_dory.layers import Array
    from patterns.reading.graph import Graph


@public
@dataclass(frozen=True)
class TensorInfo:
    """An input or output as the source model declares it.

    Attributes:
        name: name in the source; unique among inputs, and among outputs.
        shape: sizes in elements, with the batch axis, in the source's layout.
        dtype: numpy name of the element type.
        scale: real value of one quantized step; ``None`` if the tensor is not quantized or the
            source does not say.
        zero_point: integer that represents 0.0; ``None`` if ``scale`` is.
        halves_to_even: whether the source rounds halves of a step to the even integer, as ONNX
            does, and not away from zero.
        layout: meaning of its four axes, ``"NHWC"`` or ``"NCHW"``, if an operator of the network
            gives them one; known of what is built.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    scale: float | None = None
    zero_point: int | None = None
    halves_to_even: bool = False
    layout: str | None = None


@dataclass(frozen=True)
class Placed:
    """Where the layers of a partitioned module are: those of no accelerator are on the CPU.

    Attributes:
        target: name of the target that it was partitioned for.
        places: layer name -> accelerator name.
    """

    target: str
    places: Mapping[str, str]


@public
@dataclass(frozen=True, eq=False)
class Model:
    """A network in the integer form, ready to be built for a target.

    Attributes:
        name: a C identifier; prefix of all generated symbols.
        graph: the integer form, whose inputs and results are in the order of the interface.
        inputs, outputs: the interface of the source model, in order.
        source: file name the model came from, or ``"IRModule"``.
        file_sha256: SHA-256 of that file, in hexadecimal; empty if the model is not the unchanged
            content of a file.
        scheme: requantization of the layers: ``"tflite"``, ``"shift"``, ``"mul_shift"``,
            ``"ternary"``, or ``"mixed"``.
        sources: layer name -> name of its output tensor in the source file, for messages.
        calibration: input -> ``[N, *shape]``, the inputs used for quantizing the model, which
            retargeting uses if no others are given; ``None`` if there are none.
        labels: right class of each of these inputs, ``[N]``; ``None`` if unknown. Builds do not
            depend on them; reports then have the accuracy.
        state: names of the inputs that whoever runs the network keeps between runs and changes in
            place, such as caches; a target may have them in L1 (`byoc_dory.state`).
        quantized_for: name of the target in whose numbers it was quantized (`htvm.torch`); empty if
            unknown.
        placed: where its layers are, if it was partitioned before (`htvm.relax.Partition`).
    """

    name: str
    graph: Graph
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    source: str = "IRModule"
    scheme: str = "tflite"
    sources: Mapping[str, str] = field(default_factory=dict[str, str])
    calibration: Mapping[str, Array] | None = None
    file_sha256: str = ""
    labels: NDArray[np.int64] | None = None
    state: tuple[str, ...] = ()
    quantized_for: str = ""
    placed: Placed | None = None

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the file that the model was read from, else of its integer form."""
        if self.file_sha256:
            return self.file_sha256
        from patterns.reading.walk import module_sha256

        return module_sha256(self.module)

    @property
    def module(self) -> IRModule:
        """The graph as a Relax module: function ``main`` with bound constants."""
        return self.graph.module

    @cached_property
    def interface_with_layouts(self) -> tuple[tuple[TensorInfo, ...], tuple[TensorInfo, ...]]:
        """The inputs and the outputs, each with its layout if the operators give it one."""
        from patterns.reading.building import layouts_of

        layouts = layouts_of(self.graph.in_order)
        inputs = zip(self.inputs, self.graph.inputs, strict=True)
        outputs = zip(self.outputs, self.graph.results, strict=True)
        return (
            tuple(replace(info, layout=layouts.get(name)) for info, (name, _) in inputs),
            tuple(replace(info, layout=layouts.get(name)) for info, name in outputs),
        )

    @property
    def identity(self) -> tuple[object, ...]:
        """Everything about the model that a build depends on, without TVM's objects."""
        graph = self.graph
        interface = (self.name, self.inputs, self.outputs, self.source, self.scheme, self.state)
        operators = tuple((node.name, node.op, node.read) for node in graph.in_order)
        network = (self.sha256, graph.inputs, graph.results, operators)
        return (*interface, *network, dict(self.sources), self.calibration)

    def __repr__(self) -> str:
        def brief(infos: tuple[TensorInfo, ...]) -> str:
            return ", ".join(f"{info.name}: {info.dtype}{list(info.shape)}" for info in infos)

        return (
            f"Model({self.name!r}, {brief(self.inputs)} -> {brief(self.outputs)}, "
            f"scheme={self.scheme!r}, from {self.source!r})"
        )


# Files have the model's name with a suffix; file systems allow 255 bytes.
_LONGEST = 64

# The generated ``<name>.h`` must not shadow a header that generated code includes, or that one of
# these includes; file systems may take ``Math.h`` for ``math.h``.
_HEADERS = (
    "assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal "
    "stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath "
    "threads time uchar unistd wchar wctype "
    "alloca arduino arm_acle arm_mve arm_neon endian features ieeefp link malloc memory newlib "
    "picolibc pthread reent riscv_vector sched strings"
)
# Nor may a library be called like what CMake makes itself.
_TARGETS = (
    "all all_build clean depend edit_cache help install list_install_components package "
    "package_source preinstall rebuild_cache run_tests test zero_check"
)
_TAKEN = frozenset(f"main {_HEADERS} {_TARGETS}".split())
_OURS = ("htvm_", "cluster_", "diana_", "dla_", "siracusa_", "snitch_")


def model_name(text: Any) -> str:
    """Turn ``text`` into a valid C identifier: other characters become one ``_``.

    A name that would start with a digit, be reserved, or be empty gets the prefix ``model_``.
    """
    name = re.sub(r"[^0-9A-Za-z]+", "_", str(text)).strip("_")
    name = name[:_LONGEST].rstrip("_")
    if name.lower() in _TAKEN or f"{name}_".startswith(_OURS) or c_identifier(name) != name:
        name = f"model_{name}".rstrip("_")
    return name
