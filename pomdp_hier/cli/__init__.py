"""The command line: ``pomdp-hier COMMAND``, a function per command.

Its imports are inside the function, so that ``--help`` and errors in options are fast. Exit codes are in
`pomdp_hier.cli.console`, signals in `pomdp_hier.__main__`.
"""

import argparse
import sys
import warnings
from collections.abc import Sequence
from typing import NoReturn

from pomdp_hier._imports import from_extra
from pomdp_hier.cli import compare, console, improve, inputs, inspect, models, score, searches
from pomdp_hier.cli.console import ExitCode, command
from pomdp_hier.errors import ParameterError, PomdpHierError, PomdpHierWarning

__all__ = ["build_parser", "main"]


def _configure_completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish", "tcsh"), help="the shell")


@command(
    "completion",
    "print the completion of commands and options for a shell",
    _configure_completion,
    "pomdp-hier completion bash > pomdp-hier.bash   # then, in ~/.bashrc: source pomdp-hier.bash",
    "pomdp-hier completion zsh > _pomdp-hier        # into a folder of $fpath",
    "pomdp-hier completion fish > pomdp-hier.fish   # into ~/.config/fish/completions",
)
def completion(options: argparse.Namespace) -> int:
    shtab = from_extra("completion", "shtab", "completion needs shtab")
    parser = build_parser()
    commands = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    for subparser in commands.choices.values():
        for action in console.file_arguments(subparser):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, shell=options.shell, root_prefix="pomdp_hier"))
    return 0


_COMMANDS = (
    *(models.reproduce, models.teach, score.score, inspect.report, searches.searches),
    *(improve.misfiled, improve.improve, improve.apply, improve.regroup),
    *(compare.compare, compare.levels, compare.features, inspect.inspect, compare.policies, inspect.show),
    *(models.check, models.solve, models.verify, completion),
)

_EPILOG = """\
examples:
  pomdp-hier reproduce
  printf 'x,y\\n1,0\\n2,1\\n0,1\\n1,3\\n' > points.csv
  echo '[[0,1],[2,3],[4,5]]' | pomdp-hier score points.csv -
  pomdp-hier score --help

Exit codes: 0 success, 1 error, 2 wrong usage, 3 failed check."""


class _Parser(argparse.ArgumentParser):
    """A parser whose help leaves the reading options to ``--help-all``, and which reports wrong usage in two lines."""

    def error(self, message: str) -> NoReturn:
        self.exit(
            ExitCode.WRONG_USAGE, f"error: {message}\nusage: {self.prog} --help lists the arguments, with examples\n"
        )

    def reading_options(self) -> list[argparse.Action]:
        """Return the options of the groups that say how a file is read."""
        groups = [group for group in self._action_groups if group.title in inputs.READING_GROUPS]
        return [option for group in groups for option in group._group_actions]

    def format_help(self) -> str:
        """Return the help without the reading options."""
        options = self.reading_options()
        helps = [option.help for option in options]
        for option in options:
            option.help = argparse.SUPPRESS
        try:
            return super().format_help()
        finally:
            for option, text in zip(options, helps, strict=True):
                option.help = text


class _HelpAll(argparse.Action):
    """Prints the whole help."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        text = "show this help and the options for reading files, and exit"
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, default=argparse.SUPPRESS, help=text)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        parser._print_message(argparse.ArgumentParser.format_help(parser), sys.stdout)
        parser.exit()


def main(argv: Sequence[str] | None = None) -> int:
    """Return the exit code of a command line; every user error is one line on standard error.

    Args:
        argv: The arguments; by default those of the process.

    Example:
        >>> main(["show", "C", "--ascii"])
        Hier-C: 12 items, 3 clusters, 2 without clusters below, height 1
        c2 (12 items)
        |- c0 (2 items): Biker Boot Straps, Silver Cloth
        `- c1 (10 items): Women Boots, Shoe Cream, Women Runner, Whitener, Sneaker, Jewel Solution, Dye Kit, ...
        0
    """
    console.prepare()
    try:
        given = sys.argv[1:] if argv is None else argv
        options = build_parser(next((word for word in given if not word.startswith("-")), "")).parse_args(given)
    except SystemExit as stop:  # argparse ends the process itself; a caller of main gets a code
        return stop.code if isinstance(stop.code, int) else ExitCode.WRONG_USAGE
    from pomdp_hier._progress import in_command

    with warnings.catch_warnings(), in_command(getattr(options, "quiet", False)):
        warnings.simplefilter("always", PomdpHierWarning)
        warnings.showwarning = console.show_warning
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    try:
        console.check_apart(options, options.files)
        code: int = options.run(options)
        console.finish()
    except ParameterError as error:
        return console.fail(error, ExitCode.WRONG_USAGE)
    except PomdpHierError as error:
        return console.fail(error, ExitCode.CANNOT_BE_DONE)
    except MemoryError:
        message = "not enough memory. Use fewer items, float32 features, or a sparse file."
        return console.fail(message, ExitCode.CANNOT_BE_DONE)
    except BrokenPipeError:
        console.silence()
        return ExitCode.READER_GONE
    except OSError as error:
        console.silence()
        message = f"{error.filename or 'writing the output'}: {error.strerror or error}"
        return console.fail(message, ExitCode.CANNOT_BE_DONE)
    except KeyboardInterrupt as error:
        return console.fail(console.said_to_end(error), console.exit_code("interrupted"))
    return code


def build_parser(name: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of the whole command line, or with the options of one command alone."""
    from pomdp_hier import __version__

    parser = _Parser(
        prog="pomdp-hier",
        description="Hierarchy Quality for Search (HQS), and checks, bounds and policies of POMDPs.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"pomdp-hier {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for entry in _COMMANDS:
        subparser = commands.add_parser(
            entry.name,
            help=entry.summary,
            description=f"{entry.summary[0].upper()}{entry.summary[1:]}.",
            epilog="examples:\n" + "\n".join(f"  {line}" for line in entry.examples),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        if name not in (None, entry.name):
            continue
        entry.configure(subparser)
        if subparser.reading_options():
            subparser.add_argument("--help-all", action=_HelpAll)
            subparser._action_groups.sort(key=lambda group: group.title in inputs.READING_GROUPS)
        named = console.file_arguments(subparser)
        subparser.set_defaults(run=entry.run, default=subparser.get_default, files=named)
    return parser
