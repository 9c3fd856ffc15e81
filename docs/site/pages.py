"""Pages of the site that the code writes itself: the command line, and what the targets take.

Also keeps pages from loading anything from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
from click.testing import CliRunner

from byoc_dory.soc.registry import loadable, resolve
from htvm.tools.cli.app import app
from htvm.tools.report.target import target_text

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

    from byoc_dory.soc.base import Soc

__all__ = [
    "boost",
    "command_line",
    "on_files",
    "on_page_markdown",
    "on_post_page",
    "on_post_template",
    "target_rules",
]

_WORKER = '<script src="https://unpkg.com/iframe-worker/shim"></script>'

BUILT_IN = ("diana", "snitch_ita", "generic")
"""SoCs that are shown: those of this repository, whatever else is installed."""

_GUIDES = ("index.md", "tutorial.md", "bring-your-own-soc.md")
# Tables and lists in which nearly every word occurs.
_DUMPS = (
    "exporter-cases.md", "exporters.md", "mutations.md", "onnx-cases.md", "operators.md",
    "reference/command-line.md", "reference/targets.md", "results.md",
)  # fmt: skip


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages (called by mkdocs)."""
    from mkdocs.structure.files import File

    pages = {"command-line": command_line(), "targets": target_rules()}
    for name, content in pages.items():
        files.append(File.generated(config, f"reference/{name}.md", content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Weigh the page in searches (called by mkdocs)."""
    page.meta.setdefault("search", {"boost": boost(page.file.src_uri)})
    return markdown


def boost(path: str) -> float:
    """Return how much a page below ``docs`` counts in searches: guides most, long lists least."""
    if path in _DUMPS:
        return 0.1
    return 4.0 if path.startswith("guides/") or path in _GUIDES else 1.0


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Let pages on a disk search with a script of ours (called by mkdocs).

    The plugin ``offline`` would load one from another server.
    """
    up = "../" * page.url.count("/")
    return output.replace(_WORKER, f'<script src="{up}site/worker.js"></script>')


def on_post_template(output_content: str, template_name: str, config: MkDocsConfig) -> str:
    """The same for pages without a source, such as the one for a wrong address."""
    return output_content.replace(_WORKER, "")


def command_line() -> str:
    """What `htvm --help` says, and what it says of each verb."""
    parts = ["# Command line", "What `htvm --help` and `htvm VERB --help` print."]
    for words in ((), *_verbs(app, ())):
        shown = CliRunner().invoke(
            app, [*words, "--help"], prog_name="htvm", env={"COLUMNS": "100"}
        ).output  # fmt: skip
        parts += [f"## htvm {' '.join(words)}".rstrip(), f"```text\n{shown.rstrip()}\n```"]
    return "\n\n".join(parts) + "\n"


def _verbs(group: click.Group, before: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield (*before, name)
        if isinstance(command, click.Group):
            yield from _verbs(command, (*before, name))


def target_rules() -> str:
    """Every SoC, the rules of its accelerators, and its numbers."""
    parts = [
        "# Targets and their rules",
        "What `htvm targets show` prints, for each built-in SoC. The rules are judged in this "
        "order, and the first objection is the verdict that `htvm explain` shows. They speak of a "
        "layer as retargeting wrote it. Where each number comes from (published, public code, "
        "derived, assumed) stands beside it in the SoC's `description.py`.",
    ]
    known = {soc.name: soc for soc in loadable()[0]}
    for name in BUILT_IN:
        parts += _of_soc(known[name])
    return "\n\n".join(parts) + "\n"


def _of_soc(soc: Soc) -> Iterator[str]:
    yield f"## {soc.title}"
    yield "Targets: " + ", ".join(f"`{target.name}`" for target in soc.targets) + "."
    for accelerator in soc.accelerators:
        yield f"### {accelerator.name}: {accelerator.title}"
        yield "\n".join(f"- {statement}" for statement in accelerator.statements)
    target = resolve(soc.targets[0].name)
    yield f"### Numbers of {soc.name}"
    yield f"```text\n{target_text(target)}\n```"
