"""The result of a reader."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from htvm.frontend.operators import Activation, Quantization


@dataclass(frozen=True)
class Options:
    """The user's information about a file, besides its path.

    Attributes:
        input_types: numpy names of the integer types of inputs declared as reals, by name, as far
            as known.
        asked: names of those whose type the user gave.
    """

    input_types: Mapping[str, str] = field(default_factory=dict[str, str])
    asked: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Network:
    """A network as records of `htvm.frontend.operators`.

    Attributes:
        inputs: (name, tensor) of every input of the file, in its order.
        outputs: (name, tensor) of every output of the file, in its order.
        steps: quantization of those tensors that have one.
        sources: tensor -> its name in the file, for messages.
        wide: those int32 tensors that the file has as int64.
    """

    inputs: tuple[tuple[str, Activation], ...]
    outputs: tuple[tuple[str, Activation], ...]
    steps: Mapping[Activation, Quantization] = field(default_factory=dict[Activation, Quantization])
    sources: Mapping[Activation, str] = field(default_factory=dict[Activation, str])
    wide: Collection[Activation] = frozenset()
