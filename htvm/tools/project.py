"""`open`: loads an exported build, to inspect, run and export it without the compiler."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from htvm.errors import ExportError, TargetError
from htvm.inputs import Inputs, bind_inputs
from htvm.public import public
from htvm.tools.report.loading import from_plain

if TYPE_CHECKING:
    from byoc_dory.soc.base import Soc
    from htvm.aot.program import Program
    from htvm.firmware.build import Built
    from htvm.firmware.manifest import Manifest
    from htvm.firmware.project import Golden
    from htvm.firmware.sizes import Sizes
    from htvm.model import TensorInfo
    from htvm.result import RunResult
    from htvm.tools.report.types import Report

_CHANGED = "undo the change, or export the model again"


@public
def open(path: str | Path, *, trust: bool = False) -> Project:
    """Load an exported build, to look at it or, if it is trusted, to run it.

    Args:
        path: the folder that `Module.export` or ``htvm compile`` wrote.
        trust: whether its C may be compiled and run on this machine, where it can do what its
            user can; digests in the folder say that it is whole, not whose it is.

    Raises:
        ExportError: it is not an export, files are missing or changed, or it was written by a newer
            version of the library.
        TargetError: its target is unknown here, or its description has changed.
    """
    from byoc_dory.soc.header import render
    from byoc_dory.soc.registry import resolve
    from htvm.firmware.export import check_files
    from htvm.firmware.manifest import FILE, read_manifest

    folder = Path(path)
    known_files = check_files(folder, FILE)
    manifest = read_manifest(folder / FILE)
    soc = resolve(manifest.target, l2_bytes=manifest.l2_bytes).soc
    if _text(folder / "runtime/include/htvm_soc.h") != render(soc):
        raise TargetError(
            f"the SoC of target '{manifest.target}' is described otherwise than when this was "
            "exported",
            where=str(folder),
            hint="open it with the version that wrote it, or export the model again",
        )
    return Project(folder, manifest, _program(folder, manifest, known_files), soc, trust=trust)


@public
class Project:
    """An exported build.

    Attributes:
        folder: the folder it was opened from.
        manifest: its description.
        program: its C files and memory plan.
        soc: the SoC it was built for.
        trust: whether its C may be compiled and run.
    """

    def __init__(
        self, folder: Path, manifest: Manifest, program: Program, soc: Soc, *, trust: bool = False
    ) -> None:
        self.folder = folder
        self.manifest = manifest
        self.program = program
        self.soc = soc
        self.trust = trust
        self._report = from_plain(manifest.report, str(folder))
        self._built: Built | None = None
        self._last: RunResult | None = None

    def __repr__(self) -> str:
        return f"Project({str(self.folder)!r}, {self.name!r}, target={self.target!r})"

    @property
    def name(self) -> str:
        """C prefix of the model; the entry function is ``<name>_run``."""
        return self.manifest.name

    @property
    def target(self) -> str:
        """Name of the target."""
        return self.manifest.target

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """The model's inputs."""
        return self.manifest.inputs

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """The model's outputs."""
        return self.manifest.outputs

    @property
    def sizes(self) -> Sizes:
        """Sizes of the linked program's parts when it was exported, in bytes."""
        return self.manifest.sizes

    @property
    def golden(self) -> Golden:
        """The stored inference: inputs and outputs, in the model's order."""
        stored = (self.manifest.golden_inputs, self.manifest.golden_outputs)
        inputs, outputs = ([each.array() for each in arrays] for arrays in stored)
        return inputs, outputs

    def run(self, inputs: Inputs | None = None) -> RunResult:
        """Run one inference on the simulated SoC, with the C files as they were exported.

        Args:
            inputs: an array, a list, or a dict by input name; by default those of the stored
                golden.

        Returns:
            Outputs, and the cycles by cause.

        Raises:
            ExportError: it was opened without trust.
            InputError: a name, shape or dtype is wrong.
            SimulationError: the core trapped, or a device model complained.
            ToolchainError: there is no C compiler, or it failed.
        """
        if not self.trust:
            raise ExportError(
                "its C is not compiled and run, as nobody said that it can be trusted",
                where=str(self.folder),
                hint="if you know who wrote it: htvm.open(folder, trust=True)",
            )
        from htvm.firmware.build import build_host, build_rv32
        from htvm.sim.runner import outcome, run

        arrays = self.golden[0] if inputs is None else bind_inputs(self.inputs, inputs)
        if self._built is None:
            make = build_rv32 if self.manifest.platform == "rv32" else build_host
            self._built = make(self.program, self.soc)
        self._last = outcome(run(self._built, arrays), self.program.steps, self.soc)
        return self._last

    def check(self) -> bool:
        """Run the stored inference; return whether every output element equals the stored one.

        Raises what `run` raises.
        """
        found = self.run()
        return all(map(np.array_equal, found.outputs, self.golden[1]))

    def report(self) -> Report:
        """Return the report of the build; with cycles if `run` has been called."""
        from htvm.tools.facts.run import with_run

        stored = self._report
        return stored if self._last is None else with_run(stored, self._last, self.soc)

    def export(self, folder: str | Path, inputs: Inputs | None = None) -> Path:
        """Write the project again.

        Args:
            folder: folder to create; it must not exist, be empty, or hold an earlier export.
            inputs: inputs of the stored golden, with the outputs of a run; by default the golden
                does not change.

        Raises:
            ExportError: the folder cannot be written, or new outputs were asked of an export that
                was opened without trust; nothing is left behind.
            InputError: an input has a wrong name, shape or dtype.
        """
        from htvm.firmware.export import export
        from htvm.firmware.manifest import StoredArray

        golden, manifest = self.golden, self.manifest
        if inputs is not None:
            arrays = bind_inputs(self.inputs, inputs)
            golden = (arrays, self.run(arrays).outputs)
            manifest = replace(
                self.manifest,
                golden_inputs=tuple(map(StoredArray.of, golden[0])),
                golden_outputs=tuple(map(StoredArray.of, golden[1])),
            )
        loop, report = self._loop(), self._report
        return export(self.program, self.soc, Path(folder), golden, manifest, loop, report)

    def _loop(self) -> dict[str, str]:
        """Return the C files of a language model's token loop, if the export has them."""
        from htvm.firmware.export import strange_file
        from htvm.firmware.paths import network_path
        from htvm.tools.language.token_loop import loop_parts

        names = [network_path(self.name, part) for part in loop_parts(self.name)]
        paths = [self.folder / name for name in names if not strange_file(self.folder, name)]
        return {path.name: _text(path) for path in paths}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ExportError(
            "a file of the export cannot be read", where=str(path), hint=_CHANGED
        ) from error


def _program(folder: Path, manifest: Manifest, known_files: Container[str]) -> Program:
    """Return the program as exported, with the C files that the export wrote."""
    from byoc_dory.region import Constant
    from htvm.aot.literals import read_c_arrays
    from htvm.aot.program import Program
    from htvm.firmware.paths import network_path

    name = manifest.name
    parts = (".h", ".c", "_kernels.h", "_layers.c", "_cpu.c", "_weights.h", "_weights.c")
    paths = [network_path(name, f"{name}{part}") for part in parts]
    files = {Path(path).name: _text(folder / path) for path in paths if path in known_files}
    weights = f"{name}_weights.c"
    arrays = read_c_arrays(files.get(weights, ""), weights)
    missing = [facts.name for facts in manifest.constants if facts.name not in arrays]
    if missing:
        raise ExportError(
            f"the constant '{missing[0]}' is missing",
            where=f"{folder}/{network_path(name, weights)}", hint=_CHANGED,
        )  # fmt: skip
    return Program(
        name=name,
        inputs=manifest.inputs,
        outputs=manifest.outputs,
        steps=manifest.steps,
        buffers=manifest.buffers,
        constants=tuple(
            Constant(
                facts.name,
                arrays[facts.name],
                facts.comment,
                facts.align,
                facts.memory,
                facts.file,
            )
            for facts in manifest.constants
        ),
        plan=manifest.plan,
        cpu_source=files.get(f"{name}_cpu.c", ""),
        layers_source=files.get(f"{name}_layers.c", ""),
        prototypes=manifest.prototypes,
        headers=manifest.headers,
        aliases=manifest.aliases,
        files=files,
        origin=manifest.origin,
        places=manifest.places,
        overwritten=manifest.overwritten,
        streamed=manifest.streamed,
        stack_bytes=manifest.sizes.stack,
    )
