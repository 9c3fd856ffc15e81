"""`native_library`: a SoC's device models as a shared library of this machine."""

from __future__ import annotations

from pathlib import Path

from byoc_dory.errors import TargetError
from byoc_dory.soc.base import Soc, Target
from byoc_dory.soc.regions import RegionRunner
from htvm.firmware.host import model_sources
from htvm.firmware.paths import runtime_c, soc_folder
from htvm.firmware.toolchain import Compiler

_FLAGS = ("-O3", "-fPIC")


def native_library(soc: Soc) -> Path:
    """Return the shared library of a SoC's devices, building it if necessary.

    It consists of the files in the folder ``native`` beside the device models, of the SoC's
    libraries, and of the models without ``<driver>_soc.c``, which connects them to a simulated
    host.  It does not depend on the numbers of the description.

    Args:
        soc: description of the SoC.

    Raises:
        TargetError: the SoC has no such folder.
        ToolchainError: there is no compiler, or it fails.
    """
    folder = soc_folder(soc)
    soc_sources = sorted((folder / "native").glob("*.c"))
    if not soc_sources:
        raise TargetError(
            "its devices have no native library",
            where=f"SoC {soc.name}",
            hint="run its programs on platform='host'",
        )
    common_folder = runtime_c() / "soc" / "common"
    models = [
        path
        for path in model_sources(soc)
        if path.name != f"{soc.driver}_soc.c" and path.parent != common_folder
    ]
    folders = [runtime_c() / name for name in soc.libraries]
    libraries = [path for place in folders for path in sorted(place.glob("*.c"))]
    includes = [folder, folder / "model", runtime_c() / "include", *folders]
    sources = [*soc_sources, *models, *libraries]
    return Compiler.zig().built(f"lib{soc.driver}.so", sources, includes, flags=_FLAGS, shared=True)


def region_runner(target: Target) -> RegionRunner | None:
    """Return what executes the regions of a target natively; None if it has nothing like that.

    Raises:
        ToolchainError: there is no C compiler, or it failed.
    """
    makers = [entry.region_runner for entry in target.accelerators]
    if len(makers) != 1 or makers[0] is None:
        return None
    return makers[0](native_library(target.soc))
