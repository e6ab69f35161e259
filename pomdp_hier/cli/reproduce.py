"""``pomdp-hier reproduce``: the paper's case study, with printed and computed values."""

import argparse
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pomdp_hier.cli import console, inputs
from pomdp_hier.cli.console import Command, ExitCode

if TYPE_CHECKING:
    from pomdp_hier.hqs.paper.reproduction import Figure, Reproduction


_DELTA_NOTE = (
    "The paper's text says delta 0.01, but every figure that it prints needs 0.005. This is the preset",
    '"table": delta 0.005, nu 1, a tie descends. For the text\'s own settings: --preset text',
)
_TEXT_NOTE = (
    "These are the settings that the paper's text states: delta 0.01, nu 1, a tie searches (Algorithm 1).",
    "The values that it prints come out with delta 0.005 only: --preset table",
)


def _configure_reproduce(parser: argparse.ArgumentParser) -> None:
    what = "the settings that Table 1 was computed with, or those that the text states (default: table)"
    parser.add_argument("--preset", choices=("table", "text"), default="table", help=what)
    parser.add_argument("--json", action="store_true", help="print every figure as JSON")


def _run_reproduce(options: argparse.Namespace) -> int:
    from pomdp_hier.hqs.paper.reproduction import reproduce

    study = reproduce(options.preset)
    if options.json:
        print(json.dumps(study.to_dict(), indent=1))
    else:
        for line in _lines(study):
            print(line)
    return ExitCode.CHECK_FAILED if study.failures else ExitCode.DONE


def _lines(study: "Reproduction") -> Iterable[str]:
    yield from ("The paper's case study: twelve products, five hierarchies", "")
    yield from _DELTA_NOTE if study.preset == "table" else _TEXT_NOTE
    yield ""
    yield from _scores(study)
    yield ""
    yield from _items(study)
    for heading, figures in study.walkthrough.items():
        yield from ("", f"{heading:<34}{'paper':>8}{'here':>9}")
        yield from (_line(figure) for figure in figures)
    yield from ("", f"{'HQS under other settings':<34}" + "".join(f"{name:>8}" for name in study.scores))
    for setting, figures in study.elsewhere.items():
        here = "".join(f"{figure.shown():>7}{_mark(figure)}" for figure in figures)
        yield f"  {setting:<32}{here}".rstrip()
    yield ""
    yield from _verdict(study)


def _scores(study: "Reproduction") -> Iterable[str]:
    yield f"{'':<10}{'HQS':>16}{'HAI against A':>22}"
    yield f"{'':<10}{'paper':>8}{'here':>8}{'paper':>14}{'here':>8}"
    ranked = sorted(study.scores, key=lambda name: -float(study.scores[name].computed))
    remarks = {ranked[0]: "best", ranked[-1]: "worst"}
    for name, score in study.scores.items():
        line = f"  Hier-{name}  {score.printed or '':>8}{score.shown():>8}{_mark(score)}"
        if name in study.hai:
            index = study.hai[name]
            line += f"{index.printed:>13}{index.shown():>8}{_mark(index)}"
        else:
            line += " " * 22
        yield f"{line} {remarks.get(name, score.note)}".rstrip()


def _items(study: "Reproduction") -> Iterable[str]:
    count = len(next(iter(study.items.values())))
    yield f"{'V of item':<10}" + "".join(f"{item:>6} " for item in range(count)).rstrip()
    for name, figures in study.items.items():
        if study.preset == "table":
            yield f"  {name} paper " + "".join(f"{figure.printed:>6} " for figure in figures).rstrip()
        here = "".join(f"{figure.shown(3):>6}{_mark(figure)}" for figure in figures)
        yield f"  {name} here  {here}".rstrip()
    if study.preset == "table":
        yield from ("", "  * misprint in the paper: its row's HQS only comes out with the value here")
        yield "  ~ rounded twice in the paper: " + ", ".join(_rounded_twice(study))


def _rounded_twice(study: "Reproduction") -> Iterable[str]:
    from pomdp_hier.hqs.paper.reproduction import ROUNDED_TWICE

    for figures in study.items.values():
        for figure in figures:
            if figure.note == ROUNDED_TWICE:
                yield f"{figure.place} is {figure.shown()}"


def _line(figure: "Figure") -> str:
    line = f"  {figure.place:<32}{figure.printed or '':>8}{figure.shown():>9}{_mark(figure)}"
    return f"{line} {figure.note}".rstrip()


def _mark(figure: "Figure") -> str:
    """Return ``!`` for a figure that is not reproduced, a mark for each kind of misprint, else a blank."""
    from pomdp_hier.hqs.paper.reproduction import MISPRINT, ROUNDED_TWICE

    if not figure.ok:
        return "!"
    return {MISPRINT: "*", ROUNDED_TWICE: "~"}.get(figure.note, " ")


def _verdict(study: "Reproduction") -> Iterable[str]:
    checked = sum(figure.expected is not None for figure in study.figures())
    if not study.failures:
        items = [figure for figures in study.items.values() for figure in figures]
        if study.preset == "table":
            printed = sum(figure.as_printed for figure in items)
            yield f"{printed} of the {len(items)} item values are as printed."
        yield f"All {checked} figures checked come out as they should."
        return
    yield f"{len(study.failures)} of {checked} figures do not come out as they should:"
    for figure in study.failures:
        yield f"  {figure.place}: expected {figure.expected}, got {figure.shown()}"


REPRODUCE = Command(
    "reproduce",
    "print the paper's case study beside the computed values, and check every figure",
    ("pomdp-hier reproduce", "pomdp-hier reproduce --preset text", "pomdp-hier reproduce --json"),
    _configure_reproduce,
    _run_reproduce,
)


_START = {
    "eta": ("probability of descending to c1", "3/4"),
    "r0": ("reward of finding the item at the root", "0"),
    "r1": ("reward of finding it in c1", "3/5"),
    "r2": ("reward of finding it in c2", "3/5"),
    "belief": ("belief that the item is in the catalogue", "1"),
}


def _configure_teach(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    inputs.add_out(parser, "the file to write, .html", required=True, metavar="HTML")
    for name, (words, value) in _START.items():
        what = f"{words} at the start, such as 0.75 or 3/4 (default: {value})"
        add(f"--{name}", metavar="X", default=value, help=what)
    inputs.add_quiet(parser)


def _run_teach(options: argparse.Namespace) -> int:
    console.check_target(options.out, options.force, endings=(".html", ".htm"))
    from pomdp_hier.report import write_teaching_page

    page = write_teaching_page(options.out, replace=options.force, **{name: getattr(options, name) for name in _START})
    console.note(f"written to {options.out}, {len(page.encode()) / 1e3:z.0f} kB", options)
    return ExitCode.DONE


TEACH = Command(
    "teach",
    "write a page with sliders on the three-node POMDP, which runs without Python",
    ("pomdp-hier teach -o page.html", "pomdp-hier teach -o other.html --eta 2/3 --r1 0.8"),
    _configure_teach,
    _run_teach,
)
