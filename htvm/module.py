"""`Module`: a built model, which can be run, inspected and exported."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from byoc_dory.errors import TargetError
from htvm.inputs import Inputs, bind_inputs
from htvm.progress_bar import with_progress
from htvm.public import public
from htvm.stage_cache import StageCache

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from byoc_dory.verdict import OperatorVerdict
    from htvm.activity import MemoryMap
    from htvm.aot.reference import Reference
    from htvm.build_options import BuildOptions, Platform
    from htvm.compiled import Compiled
    from htvm.firmware.build import Built
    from htvm.firmware.sizes import Sizes
    from htvm.model import Model
    from htvm.progress import Progress
    from htvm.result import RunResult
    from htvm.tools.report.explain import Explanation
    from htvm.tools.report.parts import Decisions
    from htvm.tools.report.types import Report
    from htvm.tools.report.verdicts import VerdictRow
    from htvm.tools.verification.types import Stray, Verification
    from htvm.tools.verification.verify import Golden
    from htvm.vm import RegionMachine


@public
class Module:
    """A built model.

    It is made by `htvm.build` and does not change afterwards, except that reports show the cycles
    of the latest run.

    Attributes:
        compiled: the results of the stages before the C compiler (layers, tiles, program, plan).
        platform: ``"rv32"`` or ``"host"``.
    """

    def __init__(
        self,
        compiled: Compiled,
        platform: Platform,
        built: Built,
        compile_with: Callable[[BuildOptions], Compiled] | None = None,
    ) -> None:
        self.compiled = compiled
        self._compile_with = compile_with
        self.platform: Platform = platform
        self._built = built
        self._last: RunResult | None = None

    def __repr__(self) -> str:
        return f"Module({self.name!r}, target={self.target!r}, platform={self.platform!r})"

    # ------------------------------------------------------------------ what it is

    @property
    def name(self) -> str:
        """C prefix of the model; the entry function is ``<name>_run``."""
        return self.compiled.source.name

    @property
    def target(self) -> str:
        """Name of the target."""
        return self.compiled.target.name

    @property
    def model(self) -> Model:
        """The model that is executed, after retargeting."""
        return self.compiled.retargeted.model

    @property
    def placement(self) -> Mapping[str, str]:
        """Layer name -> name of the accelerator it runs on, or ``"cpu"``."""
        return dict(self.compiled.dispatch.placement)

    @property
    def verdicts(self) -> tuple[OperatorVerdict, ...]:
        """The accelerators' answers to each operator, in execution order."""
        return self.compiled.dispatch.verdicts

    @property
    def l2_peak(self) -> int:
        """Peak bytes of L2 for intermediate tensors and workspaces (the arena's size)."""
        return self.compiled.program.plan.peak

    @property
    def built(self) -> Built:
        """The program that the C compiler made."""
        return self._built

    @property
    def sizes(self) -> Sizes:
        """Sizes of the linked program's parts, in bytes."""
        return self._built.sizes

    @property
    def code_size(self) -> int:
        """Bytes of machine code of the linked program, including runtime and drivers."""
        return self._built.sizes.code

    # ------------------------------------------------------------------ running

    def run(self, inputs: Inputs, *, analog_noise: float = 0.0, noise_seed: int = 0) -> RunResult:
        """Run one inference on the simulated SoC.

        Args:
            inputs: an array, a list, or a dict by input name, in the source model's shapes,
                dtypes and quantization.

            analog_noise: standard deviation of the noise of in-memory arrays, in steps of their
                converters, drawn anew for every converted sum.  Without noise (the default) a run
                is exact.
            noise_seed: seed of the noise: equal seeds give equal runs.

        Returns:
            Outputs in the source model's dtype and quantization, and the cycles by cause.

        Raises:
            InputError: a name, shape or dtype is wrong, or the noise is out of range.
            TargetError: noise for a target without an in-memory array.
            SimulationError: the core trapped, or a device model complained.
        """
        from htvm.sim.noise import noise_settings
        from htvm.sim.runner import outcome, run

        arrays = bind_inputs(self.compiled.source.inputs, inputs)
        settings = noise_settings(self.compiled.target, analog_noise, noise_seed)
        raw = run(self._built, arrays, settings)
        found = outcome(raw, self.compiled.program.steps, self.compiled.target.soc)
        self._last = replace(found, maps=self._maps)
        return self._last

    @cached_property
    def _maps(self) -> tuple[MemoryMap, ...]:
        """The contents of the memories, which are the same in every run."""
        from htvm.sim.maps import memory_maps

        return memory_maps(self.compiled)

    def reference(self, inputs: Inputs) -> list[NDArray[np.generic]]:
        """Compute the outputs from the retargeted integer form, by TVM on this machine.

        Args:
            inputs: as for `run`.

        Returns:
            One array per output; `run` equals it element for element.

        Raises:
            InputError: a name, shape or dtype is wrong.
        """
        return self._reference(bind_inputs(self.compiled.source.inputs, inputs))

    @cached_property
    def _reference(self) -> Reference:
        from htvm.aot.reference import build_llvm_reference

        return build_llvm_reference(self.model.module)

    def outside(self, inputs: Inputs) -> Stray | None:
        """Run once and return what a step first writes outside of its results; None if none does.

        Red zones are the arena apart from what a step writes, inputs, outputs, 512 bytes on both
        sides of these, and as many of L1 behind what a layer uses. `verify` names the line of C,
        too.

        Args:
            inputs: as for `run`.

        Raises:
            InputError: a name, shape or dtype is wrong.
            TargetError: the module was built for another platform than ``"rv32"``.
            SimulationError: the core trapped, or a device model complained.
        """
        from htvm.tools.verification.verify import written_outside

        if self.platform != "rv32":
            raise TargetError(
                "red zones are watched on the instruction-set simulator",
                where=f"platform '{self.platform}'",
                hint="build for platform rv32",
            )
        return written_outside(
            self.compiled, bind_inputs(self.compiled.source.inputs, inputs), self._built
        )

    @with_progress
    def verify(
        self, inputs: Inputs, golden: Golden | None = None, *, progress: Progress | None = None
    ) -> Verification:
        """Run on the simulated SoC and compare every step with the reference.

        Args:
            inputs: as for `run`.
            golden: the user's own outputs for these inputs: a mapping from output name to array, or
                an ``.npz`` file with such arrays, in the source model's dtypes and quantization.
            progress: receives the stages as they are done; by default a bar on a terminal
                and in a notebook, if it takes a while.

        Returns:
            The first layer, tile and element that differ, with both values and the line of C that
            wrote the element; and how the outputs compare with the golden.  The firmware is run
                even
            if the module was built for another platform.

        Raises:
            InputError: a name, shape or dtype is wrong, or the file holds no arrays.
            TargetError: the simulator has no core that executes the target's programs.
            L2OverflowError: the firmware does not fit (for a module built for ``"host"``).
            SimulationError: the core trapped, or a device model complained.
        """
        from htvm.tools.verification.verify import bind_golden, verify

        arrays = bind_inputs(self.compiled.source.inputs, inputs)
        own = None if golden is None else bind_golden(self.compiled.source.outputs, golden)
        return verify(self.compiled, arrays, own, progress=progress)

    def vm(self) -> RegionMachine:
        """Return the build in TVM's own runtime, the Relax virtual machine on this machine.

        Everything outside of regions is compiled by TVM; each region is an external function that
        runs on the SoC's device models.  There is no simulated host.

        Raises:
            TargetError: the target's name does not tell all of its numbers.
            ToolchainError: there is no C compiler, or it failed.
        """
        from htvm.vm import RegionMachine

        return RegionMachine(self.compiled)

    # ------------------------------------------------------------------ looking

    def report(self, changes: int = 0) -> Report:
        """Return the report of this build; with cycles if `run` has been called on ``rv32``.

        Args:
            changes: largest number of changes to the model to advise, as for `explain`.
        """
        from htvm.tools.facts.report import report_of

        report = report_of(self.compiled, self.platform, self._built.sizes, self._last)
        report = replace(report, verdicts=self._verdict_rows, decisions=self.decisions)
        if not changes:
            return report
        found = self.explain(changes)
        return replace(report, advice=found.improvements, settings=found.settings)

    @cached_property
    def decisions(self) -> Decisions | None:
        """How often source and build decide as the labels say; None if none were given."""
        from htvm.tools.facts.run import decisions_of

        return decisions_of(self.compiled.source, lambda inputs: self._reference(inputs))

    @cached_property
    def _verdict_rows(self) -> tuple[VerdictRow, ...]:
        from htvm.tools.explain.explanation import explanation_of

        return explanation_of(self.compiled, 0, StageCache.of_user(), measure=False).rows

    def save_report(self, path: str | Path) -> Path:
        """Write the report to a file, in the format of its suffix: ``report().save(path)``.

        Args:
            path: path ending in ``.html``, ``.txt``, ``.csv``, ``.json``, ``.perfetto.json`` (a
                trace) or ``.png``.

        Returns:
            The path.

        Raises:
            ExportError: the suffix is not supported, or the file cannot be written.
            DependencyError: the format is a figure and matplotlib is not installed.
        """
        return self.report().save(path)

    def explain(self, changes: int = 3) -> Explanation:
        """Return where each operator runs, why not elsewhere, and which changes would help.

        Args:
            changes: largest number of changes to the model to look for; 0 for none, which is
                faster.
        """
        from htvm.tools.explain.explanation import explanation_of

        return explanation_of(
            self.compiled, changes, StageCache.of_user(), compile_with=self._compile_with
        )

    # ------------------------------------------------------------------ taking away

    def export(
        self, folder: str | Path, inputs: Inputs | None = None, kind: str | None = None
    ) -> Path:
        """Write a self-contained C project, or a package of a build system.

        Both check a golden.  A project builds with make or CMake, on the simulated SoC too, and
        `htvm.open` opens it again.

        Args:
            folder: folder to create; it must not exist, be empty, or hold an earlier export.  For
                the kind ``"mlf"`` it is the tar file to write.
            inputs: inputs of the stored golden; seeded random inputs by default.
            kind: a package for ``"zephyr"``, ``"esp-idf"``, ``"arduino"``, ``"platformio"``,
                ``"cmsis"`` or ``"cmake"``, or TVM's Model Library Format, ``"mlf"``; a project by
                default, and for Cortex-M cores ``"cmake"``.

        Returns:
            The folder.

        Raises:
            ExportError: the folder cannot be written; nothing is left behind.
            InputError: an input has a wrong name, shape or dtype.
            TargetError: there is no such kind of package, or none for the target.
        """
        from htvm.firmware.export import check_folder, export, write_project
        from htvm.firmware.manifest import Manifest
        from htvm.firmware.mlf import check_tar, mlf_files, write_mlf
        from htvm.firmware.packages import MLF, kind_written, package_files
        from htvm.inputs import seeded_inputs

        compiled = self.compiled
        program, soc = compiled.program, compiled.target.soc
        kind = kind_written(kind, soc)
        if kind == MLF:
            check_tar(Path(folder))
            script = str(self.model.module.script(show_meta=False))
            return write_mlf(mlf_files(program, soc, script), Path(folder))
        check_folder(Path(folder), kind)
        infos = compiled.source.inputs
        arrays = seeded_inputs(infos) if inputs is None else bind_inputs(infos, inputs)
        golden = (arrays, self._reference(arrays))
        if kind is not None:
            return write_project(package_files(kind, program, soc, golden), Path(folder))
        from htvm.tools.facts.report import report_of
        from htvm.tools.report.loading import plain

        report = replace(
            report_of(compiled, self.platform, self._built.sizes, None),
            verdicts=self._verdict_rows,
        )
        manifest = Manifest.of(
            program,
            self.target,
            compiled.options.l2_bytes,
            self.platform,
            plain(report),
            self._built.sizes,
            golden,
        )
        return export(program, soc, Path(folder), golden, manifest, self._token_loop(), report)

    def _token_loop(self) -> dict[str, str]:
        """Return the C files of a language model's token loop; none of another network's."""
        from htvm.tools.language import LanguageModel
        from htvm.tools.language.token_loop import exported_loop

        source = self.compiled.source
        if not isinstance(source, LanguageModel):
            return {}
        return exported_loop(self.compiled.program, source)
