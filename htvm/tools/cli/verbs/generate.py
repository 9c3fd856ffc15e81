"""``htvm generate``: a language model writes tokens on the simulated SoC."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

import htvm
from htvm.errors import InputError
from htvm.progress_bar import shown_progress
from htvm.tools.cli import options
from htvm.tools.cli.arguments import Reading, open_model
from htvm.tools.cli.output import print_json
from htvm.tools.cli.terminal import echo
from htvm.tools.generation import check
from htvm.tools.language import LanguageModel

if TYPE_CHECKING:
    from htvm.tools.generation import Generation


@click.command(
    epilog=options.examples(
        "htvm generate zoo:microllama:16 --target siracusa",
        "htvm generate zoo:microllama --target siracusa --prompt 72,101,108 --steps 8",
        "htvm generate step.onnx --target siracusa.cluster --temperature 1 --seed 3 --json",
    )
)
@options.model
@options.reading
@options.target
@options.platform
@click.option("--prompt", default="1", show_default=True, help="Token ids to read, with commas.")
@click.option("--steps", default=4, show_default=True, help="How many tokens to write.")
@click.option(
    "--temperature", default=0.0, show_default=True, help="0: the highest score; above: draws."
)
@click.option("--seed", default=0, show_default=True, help="Seed of the draws.")
@options.common
def command(
    model: str,
    reading: Reading,
    target: str,
    platform: Any,
    prompt: str,
    steps: int,
    temperature: float,
    seed: int,
    as_json: bool,
) -> None:
    """Build MODEL, a language model, let it read a prompt and write tokens.

    A decoding step from a file has no tables of tokens: these are drawn, so that it writes random
    tokens at its real speed.
    """
    tokens = _ids(prompt)
    opened = open_model(model, reading)
    drawn = not isinstance(opened, LanguageModel)
    language = opened if isinstance(opened, LanguageModel) else LanguageModel.of(opened)
    check(language, tokens, steps, temperature=temperature, seed=seed)
    with shown_progress() as progress:
        module = htvm.build(language, target=target, platform=platform, progress=progress)
        with progress.stage(f"writing {steps} tokens"):
            written = htvm.generate(module, tokens, steps, temperature=temperature, seed=seed)
    if as_json:
        print_json("generate", _data(written, drawn))
        return
    echo(f"prompt: {' '.join(map(str, written.prompt))}")
    echo(f"tokens: {' '.join(map(str, written.tokens))}")
    if written.cycles_per_token is not None:
        echo(
            f"{written.cycles_per_token:,.0f} cycles a token, "
            f"{written.tokens_per_second:,.0f} tokens a second at "
            f"{(written.clock_hz or 0) / 1e6:g} MHz (simulated)"
        )
    if written.uj_per_token is not None:
        echo(f"{written.uj_per_token:.0f} uJ a token, from published powers (estimated)")
    if drawn:
        echo("embedding and output are drawn: the file has none, so tokens mean nothing")


def _ids(text: str) -> list[int]:
    """Return the ids of a prompt.

    Raises:
        InputError: one of them is no whole number.
    """
    ids = []
    for part in text.split(","):
        try:
            ids.append(int(part))
        except ValueError:
            raise InputError(
                f"'{part}' is no token id", where="option '--prompt'", hint="such as 72,101,108"
            ) from None
    return ids


def _data(written: Generation, drawn: bool) -> dict[str, Any]:
    return {
        **asdict(written),
        "cycles_per_token": written.cycles_per_token,
        "tokens_per_second": written.tokens_per_second,
        "uj_per_token": written.uj_per_token,
        "tables": "drawn" if drawn else "own",
    }
