"""What is asked of a peer, and what it answered."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Answer", "Case", "Peer", "Survey"]


@dataclass(frozen=True)
class Peer:
    """A compiler or runtime that can be installed from the package index.

    Attributes:
        name: short name; its environment and its probe (``probes/<name>.py``) are called so.
        title: name in tables.
        packages: what to install, with versions.
        takes: kinds of files that its probe is given: "tflite", "onnx".
        makes: what it makes of them, in a few words.
        note: what to know of its figures.
        pre: whether there are only preliminary versions.
        dependencies: whether to install what the packages need, too.
        program: a program that no package index has, and must be on the path.
    """

    name: str
    title: str
    packages: tuple[str, ...]
    takes: tuple[str, ...]
    makes: str
    note: str = ""
    pre: bool = False
    dependencies: bool = True
    program: str = ""


@dataclass(frozen=True)
class Case:
    """A file, with inputs and the outputs that it defines.

    Attributes:
        name: short name in tables.
        path: the file.
        golden: an ``.npz`` file with ``inputs`` and ``outputs``, one row per inference.
        oracle: whose outputs these are.
    """

    name: str
    path: str
    golden: str
    oracle: str

    @property
    def kind(self) -> str:
        """The kind of file: "tflite" or "onnx"."""
        return self.path.rsplit(".", 1)[1]


@dataclass(frozen=True)
class Answer:
    """What a peer made of a file; None where it has no such figure.

    Attributes:
        reads: whether it takes the file.
        reason: why not, or what else there is to say, in a few words.
        equal: elements of all outputs that equal the oracle's.
        elements: elements of all outputs.
        largest: the largest difference, in quantized steps or in units of a real output.
        code_bytes, data_bytes, ram_bytes: machine code, constants, and working memory of what it
            made; ``size_of`` says of what.
        size_of: what the sizes are of, e.g. "RV32IMC object, -Os".
        compile_seconds: time to make it, in seconds.
        host_seconds: time of one inference on this machine, one thread, the median of several.
        entry: function of ``network.c``, which the probe leaves in its folder, that computes the
            network on any core, given the addresses of input and output.
        core_instructions, core_flash, core_ram: of one inference on an emulated Cortex-M4
            (`benchmarks.peers.on_core`), and bytes.
    """

    reads: bool
    reason: str = ""
    equal: int | None = None
    elements: int | None = None
    largest: float | None = None
    code_bytes: int | None = None
    data_bytes: int | None = None
    ram_bytes: int | None = None
    size_of: str = ""
    compile_seconds: float | None = None
    host_seconds: float | None = None
    entry: str = ""
    core_instructions: int | None = None
    core_flash: int | None = None
    core_ram: int | None = None


@dataclass(frozen=True)
class Survey:
    """All answers of one peer.

    Attributes:
        peer: name of the peer.
        versions: the versions that were installed, e.g. ("onnxruntime 1.32.0",).
        failure: why it could not be installed; empty if it could.
        answers: name of a case -> answer.
    """

    peer: str
    versions: tuple[str, ...] = ()
    failure: str = ""
    answers: dict[str, Answer] = field(default_factory=dict)

    def data(self) -> dict[str, Any]:
        """Return everything for JSON."""
        return asdict(self)

    @classmethod
    def of(cls, data: dict[str, Any]) -> Survey:
        """Return the survey that `data` describes."""
        answers = {name: Answer(**answer) for name, answer in data["answers"].items()}
        return cls(data["peer"], tuple(data["versions"]), data["failure"], answers)
