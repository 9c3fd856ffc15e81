"""TVM's Model Library Format, version 7, as TVM 0.17 wrote it for its ahead-of-time executor.

A tar file with the C of the network, an entry function ``tvmgen_default_run`` with its structs,
and metadata, for tools that were built on microTVM.  The C needs no runtime of TVM: ``runtime`` and
``templates``, which such tools took from the file for TVM's own, are left out, and so is the list
of external dependencies that named them.

Each C file has the headers it needs in its text: TVM's own project templates compile
``codegen/host/src`` without ``codegen/host/include`` among the folders of headers, or copy only the
C files.
"""

from __future__ import annotations

import io
import json
import math
import re
import struct
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from byoc_dory.errors import ExportError
from htvm.aot.entry import render, template_fields
from htvm.files import write_whole
from htvm.firmware.packages import library_files

if TYPE_CHECKING:
    from byoc_dory.soc.base import Soc
    from htvm.aot.program import Program

MODULE = "default"
"""Name of the module, which TVM used where none was given."""

_FORMAT = 7
_CPU = 1  # kDLCPU
_PARAMETERS = 0xF7E58D4F05049CB7  # kTVMNDArrayListMagic
_INCLUDE = re.compile(r'^#include "(?P<name>[^"]+)"\n', re.MULTILINE)


def mlf_files(program: Program, soc: Soc, script: str) -> dict[str, bytes]:
    """Return the files of the format: path inside the tar -> contents.

    Args:
        program: the program to export.
        soc: the SoC it was built for, without devices.
        script: text of the Relax module it was compiled from.
    """
    tensors = _tensors(program)
    known_fields = {
        **template_fields(program),
        "module": MODULE,
        "MODULE": MODULE.upper(),
        "tensors": tensors,
        "arguments": [
            f"{'inputs' if tensor['kind'] == 'Input' else 'outputs'}->{tensor['name']}"
            for tensor in tensors
        ],
    }
    library = library_files(program, soc)
    interface = {
        f"tvmgen_{MODULE}.h": render("package/tvmgen.h.jinja", **known_fields),
        f"{program.name}.h": library[f"{program.name}.h"],
    }
    sources = [render("package/tvmgen.c.jinja", **known_fields)]
    sources += [text for name, text in sorted(library.items()) if name.endswith(".c")]
    # Compilers warn of functions that a file has and does not call, unless they are in a header.
    bare = render("model.h.jinja", **{**known_fields, "conversions": False})
    within = {**library, **interface, f"{program.name}.h": bare}
    files = {
        f"codegen/host/src/{MODULE}_lib{number}.c": _with_headers(text, within)
        for number, text in enumerate(sources)
    }
    files |= {f"codegen/host/include/{name}": text for name, text in interface.items()}
    files["metadata.json"] = json.dumps(_metadata(program, soc, tensors), indent=2, sort_keys=True)
    files[f"src/{MODULE}.relax"] = script
    # Weights are in the C: the list of parameters (count of names, count of arrays) is empty.
    parameters = struct.pack("<QQQQ", _PARAMETERS, 0, 0, 0)
    return {
        **{name: text.encode("utf-8") for name, text in files.items()},
        f"parameters/{MODULE}.params": parameters,
    }


def _with_headers(text: str, headers: Mapping[str, str]) -> str:
    """Return C in which the first include of each header is replaced by its text.

    No header includes another under a condition, so that later includes would add nothing.
    """
    seen: set[str] = set()

    def text_of(match: re.Match[str]) -> str:
        name = match["name"]
        if name in seen:
            return ""
        seen.add(name)
        return _INCLUDE.sub(text_of, headers[name])

    return _INCLUDE.sub(text_of, text)


def _tensors(program: Program) -> list[dict[str, Any]]:
    """Return inputs and outputs with names as TVM made them: letters, digits and underscores."""
    found: list[dict[str, Any]] = []
    for kind, infos in (("Input", program.inputs), ("Output", program.outputs)):
        names: list[str] = []
        for number, info in enumerate(infos):
            name = re.sub(r"\W", "_", info.name, flags=re.ASCII) or f"{kind.lower()}{number}"
            name = f"_{name}" if name[0].isdigit() else name
            names.append(name if name not in names else f"{name}_{number}")
            size = math.prod(info.shape) * np.dtype(info.dtype).itemsize
            entry = {"kind": kind, "name": names[-1], "bytes": size, "dtype": info.dtype}
            found.append(entry)
    return found


def _metadata(program: Program, soc: Soc, tensors: list[dict[str, Any]]) -> dict[str, Any]:
    def described(kind: str) -> dict[str, Any]:
        return {
            tensor["name"]: {"dtype": tensor["dtype"], "size": tensor["bytes"]}
            for tensor in tensors
            if tensor["kind"] == kind
        }

    main = {
        "device": _CPU,
        "workspace_size_bytes": program.plan.peak,
        "constants_size_bytes": program.constant_bytes,
        "io_size_bytes": sum(tensor["bytes"] for tensor in tensors),
        "inputs": described("Input"),
        "outputs": described("Output"),
    }
    functions = [
        # A kernel's workspaces are in the arena, which the entry counts.
        {"function_name": name, "workspace": [{"device": _CPU, "workspace_size_bytes": 0}]}
        for name in dict.fromkeys(step.function for step in program.steps if step.function)
    ]
    cpu = "" if soc.host.arm is None else f" -mcpu={soc.host.arm.cpu}"
    return {
        "version": _FORMAT,
        "modules": {
            MODULE: {
                "model_name": MODULE,
                # Not the real one: the same build gives the same bytes.
                "export_datetime": "1970-01-01 00:00:00Z",
                "memory": {"functions": {"main": [main], "operator_functions": functions}},
                "target": [f"c -keys=cpu{cpu}"],
                "executors": ["aot"],
                "style": "full-model",
            }
        },
    }


def check_tar(path: Path) -> None:
    """Refuse a name that does not say that a tar file is written.

    Raises:
        ExportError: it does not end with ``.tar``.
    """
    if path.suffix.lower() != ".tar":
        raise ExportError(
            f"'{path.name}' is not the name of a tar file, which is what is written",
            where=str(path),
            hint="end it with .tar",
        )


def write_mlf(files: Mapping[str, bytes], path: Path) -> Path:
    """Write the tar file, completely or not at all.

    Raises:
        ExportError: it cannot be written.
    """
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for folder in sorted({str(parent) for name in files for parent in Path(name).parents}):
            entry = tarfile.TarInfo("." if folder == "." else f"./{folder}")
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            entry.uname = entry.gname = "root"
            tar.addfile(entry)
        for name in sorted(files):
            entry = tarfile.TarInfo(f"./{name}")
            entry.size, entry.mode = len(files[name]), 0o644
            entry.uname = entry.gname = "root"
            tar.addfile(entry, io.BytesIO(files[name]))
    write_whole(path, stream.getvalue(), "the package", str(path))
    return path
