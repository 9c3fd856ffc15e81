"""``htvm completion``: the script for completing verbs, options, targets and models in a shell."""

from __future__ import annotations

import click

from htvm.tools.cli import options
from htvm.tools.cli.output import print_json

_NAME = "htvm"
_VARIABLE = "_HTVM_COMPLETE"


@click.command(
    epilog=options.examples(
        'eval "$(htvm completion bash)"                                   # in ~/.bashrc',
        'eval "$(htvm completion zsh)"                                    # in ~/.zshrc',
        "htvm completion fish > ~/.config/fish/completions/htvm.fish",
    )
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@options.common
def command(shell: str, as_json: bool) -> None:
    """Print the script with which SHELL completes verbs, options, targets and models."""
    from click.shell_completion import get_completion_class

    maker = get_completion_class(shell)
    assert maker is not None, shell
    # Not `source`, which first looks for the shell on this machine.
    completion = maker(click.get_current_context().find_root().command, {}, _NAME, _VARIABLE)
    script = completion.source_template % completion.source_vars()
    if as_json:
        print_json("completion", {"shell": shell, "script": script})
    else:
        click.echo(script)
