"""Building a token loop: a program that reads a prompt and writes tokens in one run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from htvm.aot.entry import render
from htvm.aot.token_loop import loop_fields, loop_files
from htvm.firmware.build import RUN_MARK, build_host, build_rv32

if TYPE_CHECKING:
    from htvm.firmware.build import Built
    from htvm.language import LanguageModel

__all__ = ["build_token_loop"]


def build_token_loop(step: Built, language: LanguageModel, *, sanitize: bool = False) -> Built:
    """Return a program that runs the token loop once, for the platform of a built step.

    Args:
        step: the decoding step, as it was built.
        language: the language model that it was built from.
        sanitize: as for `build_host`; for that platform only.

    Raises:
        L2OverflowError: state and tables exceed L2.
        UnsupportedError: see `loop_files`.
    """
    native = step.platform == "host"
    main = render(
        "run_generate.c.jinja",
        **loop_fields(step.program, language),
        native=native,
        run_mark=RUN_MARK,
    )
    files = {**loop_files(step.program, language), "main.c": main}
    if native:
        return build_host(step.program, step.soc, step.compiler, sanitize=sanitize, extra=files)
    return build_rv32(step.program, step.soc, step.compiler, extra=files)
