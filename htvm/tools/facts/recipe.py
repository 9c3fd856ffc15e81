"""How to reproduce a build: version, command, options, hashes."""

from __future__ import annotations

import hashlib
from dataclasses import fields
from typing import TYPE_CHECKING

from htvm.tools.report.picture_types import Recipe
from htvm.version import __version__

if TYPE_CHECKING:
    from htvm.compiled import Compiled, Platform


def recipe_of(compiled: Compiled, platform: Platform) -> Recipe:
    """Return how a build was made, as far as known; the command is a line of Python."""
    from htvm.aot.entry import model_sources

    digest = hashlib.sha256()
    for name, text in sorted(model_sources(compiled.program).items()):
        digest.update(name.encode() + b"\0" + text.encode() + b"\0")
    options = [("target", compiled.target.name), ("platform", platform), *_options(compiled)]
    given = ", ".join(f'{name}="{value}"' for name, value in options[:2])
    tiling = compiled.options.tiling
    if compiled.target.accelerators:
        given += f', policy="{compiled.planned.policy}", schedule="{tiling.schedule}"'
        if compiled.options.rewrites == "off":
            given += ', rewrites="off"'
    return Recipe(
        version=__version__,
        command=f"htvm.build(model, {given})",
        options=tuple(options),
        model=compiled.source.source,
        model_sha256=compiled.source.file_sha256,
        program_sha256=digest.hexdigest(),
    )


def _options(compiled: Compiled) -> list[tuple[str, str]]:
    options = compiled.options
    found = [("cpu_kernels", str(options.cpu_kernels))]
    if options.l2_bytes is not None:
        found.append(("l2_bytes", str(options.l2_bytes)))
    if compiled.target.accelerators:
        found += [("policy", compiled.planned.policy), ("rewrites", str(options.rewrites))]
        found += [
            (field.name, _said(options.tiling, field.name)) for field in fields(options.tiling)
        ]
    return found


def _said(options: object, name: str) -> str:
    value = getattr(options, name)
    return "default" if value is None else str(value)
