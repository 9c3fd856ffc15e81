"""The description of an export: ``htvm.json``.

The document has ``schema`` (the version), ``kind`` and the fields of `Manifest`, with which a
project can be opened again, or those of `PackageManifest`.  The contents of the C files are not
repeated: constants are read from them.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from byoc_dory.emit.text import c_identifier
from byoc_dory.errors import ExportError
from byoc_dory.memory.arena import BufferUse, MemoryPlan
from htvm.aot.program import Program, Step
from htvm.aot.steps import Provenance, Streamed
from htvm.files import is_pipe
from htvm.firmware.sizes import Sizes
from htvm.model import TensorInfo
from htvm.version import __version__

FILE = "htvm.json"

SCHEMA = 1
"""Version of the document: raised when a field is removed or redefined, not for new fields."""

_IF_ANY = ("overwritten", "streamed", "devices")
"""Fields that are left out of the document where they are empty."""

PROJECT = "project"
_PACKAGE = "package"

Array: TypeAlias = npt.NDArray[np.generic]


@dataclass(frozen=True)
class StoredArray:
    """An array: dtype, shape, and its bytes (little-endian, C order) in base 64."""

    dtype: str
    shape: tuple[int, ...]
    data: str

    @classmethod
    def of(cls, array: Array) -> StoredArray:
        """Store an array."""
        little = array.astype(array.dtype.newbyteorder("<"))
        return cls(
            array.dtype.name, array.shape, base64.b64encode(little.tobytes()).decode("ascii")
        )

    def array(self) -> Array:
        """Return the array.

        Raises:
            ValueError: bytes, dtype and shape contradict each other.
        """
        dtype = np.dtype(self.dtype).newbyteorder("<")
        data = base64.b64decode(self.data, validate=True)
        if len(data) != math.prod(self.shape) * dtype.itemsize:
            raise ValueError("bytes and shape contradict each other")
        return np.frombuffer(data, dtype).reshape(self.shape).astype(self.dtype)


@dataclass(frozen=True)
class ConstantFacts:
    """A constant: its C symbol, comment, alignment, its memory if that is not L2, and its file."""

    name: str
    comment: str
    align: int
    memory: str = ""
    file: str = ""


@dataclass(frozen=True)
class Manifest:
    """A build, except for the contents of its C files.

    Attributes:
        htvm: version of the library that wrote it.
        name: C prefix of the model.
        target: name of the target.
        platform: platform of the build.
        l2_bytes: requested size of L2; None for the target's own.
        inputs, outputs: the model's interface.
        steps: steps of the entry function.
        buffers, plan: buffers of the arena, and their offsets.
        constants: constants in the order of the C file.
        prototypes, headers, aliases: as in `Program`.
        sizes: sizes of the linked program.
        golden_inputs, golden_outputs: inputs and outputs of one inference.
        report: report of the build, without a run, as plain values.
        origin: the provenance that the heads of the files state.
        places, overwritten, streamed: as in `Program`.
    """

    htvm: str
    name: str
    target: str
    platform: Literal["rv32", "arm", "qemu", "host"]
    l2_bytes: int | None
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    steps: tuple[Step, ...]
    buffers: tuple[BufferUse, ...]
    plan: MemoryPlan
    constants: tuple[ConstantFacts, ...]
    prototypes: tuple[str, ...]
    headers: tuple[str, ...]
    aliases: tuple[tuple[str, str], ...]
    sizes: Sizes
    golden_inputs: tuple[StoredArray, ...] = field(repr=False)
    golden_outputs: tuple[StoredArray, ...] = field(repr=False)
    report: Mapping[str, Any] = field(repr=False)
    origin: Provenance | None = None
    places: tuple[tuple[int, int], ...] = ()
    overwritten: tuple[tuple[int, str], ...] = ()
    streamed: Streamed | None = None

    @classmethod
    def of(
        cls,
        program: Program,
        target: str,
        l2_bytes: int | None,
        platform: Literal["rv32", "arm", "qemu", "host"],
        report: Mapping[str, Any],
        sizes: Sizes,
        golden: tuple[Sequence[Array], Sequence[Array]],
    ) -> Manifest:
        """Describe a build; the report must be one without a run."""
        return cls(
            htvm=__version__,
            name=program.name,
            target=target,
            platform=platform,
            l2_bytes=l2_bytes,
            inputs=program.inputs,
            outputs=program.outputs,
            steps=program.steps,
            buffers=program.buffers,
            plan=program.plan,
            constants=tuple(
                ConstantFacts(c.name, c.comment, c.align, c.memory, c.file)
                for c in program.constants
            ),
            prototypes=program.prototypes,
            headers=program.headers,
            aliases=program.aliases,
            sizes=sizes,
            golden_inputs=tuple(map(StoredArray.of, golden[0])),
            golden_outputs=tuple(map(StoredArray.of, golden[1])),
            report=report,
            origin=program.origin,
            places=program.places,
            overwritten=program.overwritten,
            streamed=program.streamed,
        )


@dataclass(frozen=True)
class PackageMemory:
    """What a network needs, in bytes: constants in flash, arena and stack in RAM."""

    constants: int
    arena: int
    stack: int


@dataclass(frozen=True)
class Device:
    """An accelerator that a network was built for, and its multiply-accumulates per cycle."""

    name: str
    title: str
    macs_per_cycle: float | None


@dataclass(frozen=True)
class PackageManifest:
    """A package of a build system, as whoever integrates it needs to know it.

    Attributes:
        htvm: version of the library that wrote it.
        name: C prefix of the model.
        build_system: the kind of package.
        core: title of the core it was built for.
        inputs, outputs: the model's interface.
        memory: what the network needs, besides its code, inputs and outputs.
        origin: the provenance that the heads of the files state.
        devices: the accelerators that it runs on besides the core; left out of the document if
            there are none.
    """

    htvm: str
    name: str
    build_system: str
    core: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    memory: PackageMemory
    origin: Provenance | None
    devices: tuple[Device, ...] = ()

    @classmethod
    def of(
        cls, program: Program, build_system: str, core: str, devices: tuple[Device, ...] = ()
    ) -> PackageManifest:
        """Describe a package of a program."""
        return cls(
            htvm=__version__,
            name=program.name,
            build_system=build_system,
            core=core,
            inputs=program.inputs,
            outputs=program.outputs,
            memory=PackageMemory(program.constant_bytes, program.plan.peak, program.stack_bytes),
            origin=program.origin,
            devices=devices,
        )


def manifest_text(manifest: Manifest | PackageManifest) -> str:
    """Return the document; equal manifests give equal bytes."""
    # Convert values as reading will: in a float field, 256 becomes 256.0.
    plain = msgspec.convert(msgspec.to_builtins(manifest), type(manifest))
    kind = PROJECT if isinstance(manifest, Manifest) else _PACKAGE
    facts = msgspec.to_builtins(plain)
    facts = {name: value for name, value in facts.items() if value or name not in _IF_ANY}
    data = {"schema": SCHEMA, "kind": kind, **facts}
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


def kind_of(text: str | bytes) -> str:
    """Return what a document says of its export: ``"project"``, or a package's build system.

    Raises:
        ValueError: it describes no export.
    """
    data = json.loads(text)
    kind = data.get("kind") if isinstance(data, dict) else None
    kind_found = data.get("build_system") if kind == _PACKAGE else kind
    if not isinstance(kind_found, str):
        raise ValueError("this JSON describes no export")
    return kind_found


def read_manifest(path: Path) -> Manifest:
    """Read the document of an export.

    Raises:
        ExportError: it cannot be read, is not a manifest, or has a newer schema than this version
            knows.
    """
    where = str(path)
    hint = "name a project that Module.export wrote"
    if is_pipe(path):
        raise ExportError("cannot read the export: this is a pipe", where=where, hint=hint)
    try:
        data = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise ExportError(
            f"cannot read the export: {error.strerror}", where=where, hint=hint
        ) from error
    except (ValueError, RecursionError) as error:
        raise ExportError("this is not JSON", where=where, hint=hint) from error
    if isinstance(data, dict) and data.get("kind") == _PACKAGE:
        raise ExportError(
            "this is a package, which has nothing to open it with", where=where, hint=hint
        )
    if not isinstance(data, dict) or data.get("kind") != PROJECT:
        raise ExportError("this JSON describes no export", where=where, hint=hint)
    version = data.get("schema")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ExportError(f"the export's schema is {version!r}", where=where, hint=hint)
    if version > SCHEMA:
        raise ExportError(
            f"the export has schema {version}, this version reads up to {SCHEMA}",
            where=where,
            hint="open it with the version of htvm that wrote it, or a newer one",
        )
    try:
        manifest = msgspec.convert(data, Manifest)
        if c_identifier(manifest.name) != manifest.name:
            raise ValueError(f"'{manifest.name}' is not a name of a model")
        for constant in manifest.constants:
            # Exporting again writes a file of this name.
            if constant.file and PurePath(constant.file).name != constant.file:
                raise ValueError(f"'{constant.file}' is not a name of a file")
        for stored in (*manifest.golden_inputs, *manifest.golden_outputs):
            stored.array()
    except (msgspec.ValidationError, ValueError, TypeError, binascii.Error) as error:
        raise ExportError(
            f"the export's description is damaged: {str(error)[:200]}",
            where=where,
            hint="export the model again",
        ) from error
    return manifest
