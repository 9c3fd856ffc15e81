"""What a reader returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from htvm.frontend.operators import Activation, Quantization

__all__ = ["Network", "Options"]


@dataclass(frozen=True)
class Options:
    """What the user says about a file beside its path.

    Attributes:
        input_types: numpy names of the integer types that inputs declared as reals hold, by name,
            as far as they are known.
    """

    input_types: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, eq=False)
class Network:
    """A network as records of `htvm.frontend.operators`.

    Attributes:
        inputs: (name, tensor) of every input of the file, in its order.
        outputs: likewise of every output.
        steps: scale and zero point of those that have them.
        sources: tensor -> name it has in the file, for messages.
    """

    inputs: tuple[tuple[str, Activation], ...]
    outputs: tuple[tuple[str, Activation], ...]
    steps: Mapping[Activation, Quantization] = field(default_factory=dict[Activation, Quantization])
    sources: Mapping[Activation, str] = field(default_factory=dict[Activation, str])
