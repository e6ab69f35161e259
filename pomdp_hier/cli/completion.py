"""``pomdp-hier completion``: a shell's completion of commands, options and choices, out of the parsers themselves."""

import argparse
import shlex
from collections.abc import Iterable
from dataclasses import dataclass

NAME = "completion"
SUMMARY = "print the completion of commands and options for a shell"
EXAMPLES = (
    "pomdp-hier completion bash > pomdp-hier.bash   # then, in ~/.bashrc: source pomdp-hier.bash",
    "pomdp-hier completion zsh > _pomdp-hier        # into a folder of $fpath",
    "pomdp-hier completion fish > pomdp-hier.fish   # into ~/.config/fish/completions",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("shell", choices=tuple(_SHELLS), help="the shell")


def run(options: argparse.Namespace) -> int:
    """Print the completion."""
    from pomdp_hier.cli import build_parser

    for line in _SHELLS[options.shell](list(_commands(build_parser()))):
        print(line)
    return 0


@dataclass(frozen=True)
class _Option:
    """An option or a position: its names, what it takes, and the choices for that."""

    names: tuple[str, ...]
    takes: bool
    choices: tuple[str, ...]
    help: str


@dataclass(frozen=True)
class _Command:
    """A command, its options, and the choices for its positions."""

    name: str
    help: str
    options: tuple[_Option, ...]
    words: tuple[str, ...]


def _commands(parser: argparse.ArgumentParser) -> Iterable[_Command]:
    """Yield what the parser knows of each command."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            summaries = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, command in action.choices.items():
                options = tuple(_option(found) for found in command._actions if found.option_strings)
                words = [str(c) for found in command._actions if not found.option_strings for c in found.choices or ()]
                yield _Command(name, summaries.get(name, ""), options, tuple(words))


def _option(action: argparse.Action) -> _Option:
    return _Option(
        names=tuple(action.option_strings),
        takes=action.nargs != 0,
        choices=tuple(map(str, action.choices or ())),
        help=(action.help or "").partition(" (")[0].partition(";")[0],
    )


def _bash(commands: list[_Command]) -> Iterable[str]:
    """Yield a function with a case a command; where nothing is known the shell completes file names."""
    yield "_pomdp_hier() {"
    yield '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" words=""'
    yield "    COMPREPLY=()"
    yield '    if [ "$COMP_CWORD" -eq 1 ]; then'
    yield f"        words={shlex.quote(' '.join(['--help', '--version', *(command.name for command in commands)]))}"
    yield "    else"
    yield '        case "${COMP_WORDS[1]} $before" in'
    for command in commands:
        for option in command.options:
            patterns = "|".join(f"'{command.name} {name}'" for name in option.names)
            if option.choices:
                yield f"        {patterns}) words={shlex.quote(' '.join(option.choices))} ;;"
            elif option.takes:
                yield f"        {patterns}) return ;;"
    yield "        *)"
    yield '            case "${COMP_WORDS[1]} $word" in'
    for command in commands:
        names = " ".join(name for option in command.options for name in option.names)
        yield f"            '{command.name} -'*) words={shlex.quote(names)} ;;"
        if command.words:
            yield f"            '{command.name} '*) words={shlex.quote(' '.join(command.words))} ;;"
    yield "            esac ;;"
    yield "        esac"
    yield "    fi"
    yield '    [ -n "$words" ] && COMPREPLY=($(compgen -W "$words" -- "$word"))'
    yield "}"
    yield "complete -o default -F _pomdp_hier pomdp-hier"


def _zsh(commands: list[_Command]) -> Iterable[str]:
    """Yield a function that hands each command's options to ``_arguments``."""
    yield "#compdef pomdp-hier"
    yield "_pomdp_hier() {"
    yield "    if (( CURRENT == 2 )); then"
    yield "        local -a commands=("
    for command in commands:
        yield f"            {shlex.quote(f'{command.name}:{command.help}')}"
    yield "        )"
    yield "        _describe command commands"
    yield "        return"
    yield "    fi"
    yield "    local command=${words[2]}"
    yield "    shift words"
    yield "    (( CURRENT-- ))"
    yield "    case $command in"
    for command in commands:
        yield f"    {command.name})"
        yield "        _arguments \\"
        for option in command.options:
            takes = (
                f":value:({' '.join(option.choices)})" if option.choices else ":value:_files" if option.takes else ""
            )
            about = option.help.translate(str.maketrans("[]:", "() "))
            for name in option.names:
                yield f"            {shlex.quote(f'*{name}[{about}]{takes}')} \\"
        positions = f"({' '.join(command.words)})" if command.words else "_files"
        yield f"            {shlex.quote(f'*:word:{positions}')} ;;"
    yield "    esac"
    yield "}"
    yield '_pomdp_hier "$@"'


def _fish(commands: list[_Command]) -> Iterable[str]:
    """Yield a line an option, on the condition that its command was given."""
    yield "complete -c pomdp-hier -n __fish_use_subcommand -l help -l version"
    for command in commands:
        name, about = shlex.quote(command.name), shlex.quote(command.help)
        yield f"complete -c pomdp-hier -f -n __fish_use_subcommand -a {name} -d {about}"
    for command in commands:
        given = f"complete -c pomdp-hier -n '__fish_seen_subcommand_from {command.name}'"
        for option in command.options:
            names = " ".join(f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in option.names)
            takes = (
                f" -x -a {shlex.quote(' '.join(option.choices))}" if option.choices else " -r" if option.takes else ""
            )
            yield f"{given} {names}{takes} -d {shlex.quote(option.help)}"
        if command.words:
            yield f"{given} -f -a {shlex.quote(' '.join(command.words))}"


_SHELLS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
