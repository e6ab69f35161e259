"""``pomdp-hier completion``: shell completion of commands, options and files (extra ``completion``)."""

import argparse

from pomdp_hier._imports import from_extra
from pomdp_hier.cli import files

NAME = "completion"
SUMMARY = "print the completion of commands and options for a shell"
EXAMPLES = (
    "pomdp-hier completion bash > pomdp-hier.bash   # then, in ~/.bashrc: source pomdp-hier.bash",
    "pomdp-hier completion zsh > _pomdp-hier        # into a folder of $fpath",
    "pomdp-hier completion fish > pomdp-hier.fish   # into ~/.config/fish/completions",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish", "tcsh"), help="the shell")


def run(options: argparse.Namespace) -> int:
    """Print the completion."""
    shtab = from_extra("completion", "shtab", "completion needs shtab")
    from pomdp_hier.cli import build_parser

    parser = build_parser()
    commands = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    for command in commands.choices.values():
        for action in files.file_arguments(command):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, shell=options.shell, root_prefix="pomdp_hier"))
    return 0
