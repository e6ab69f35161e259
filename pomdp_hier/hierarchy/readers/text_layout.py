"""The structure of lines of text: separators of paths, and other formats.

Text is examined here before it is read as paths or as a table; for another format the error names the reader.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pomdp_hier._text import brief, listed
from pomdp_hier.errors import PythonAdvice, ReaderError, Setting

_SEPARATORS = (">", "|", "/", "›", "»", "→", "-->", "->", "=>", ">>", "::", ";", "\\", "--", "\t")
_IN_NAMES = (" - ", " – ", ":", ",", ".")  # they may part segments, but are common in names
_PAIRS = {'"': '"', "'": "'", "`": "`", "<": ">", "[": "]", "{": "}", "(": ")", "|": "|"}
_BRANCH = re.compile(r"[\s│├└╰─|`]*(?:\+?-{2,}\s+|(?:\*+|#+|[-+•◦▪‣·])\s+)?")
_BULLET = re.compile(r"\s*(?:\*+|#+|[-+•◦▪‣·])\s+\S")
_DRAWN = re.compile(r"^[\s│|]*(?:[├└╰]|[|`+]--)", re.MULTILINE)
_CODE = re.compile(r"\s*[A-Z]{0,3}\d[\w.-]*\.?\s+\S")
_LANGUAGE = re.compile(r"(?:<\s*)?(?:[a-z_]{3,}:)?([a-z]{2}(?:[-_][a-zA-Z]+)?)\s*:\s*\S")
_COLUMNS = re.compile(r"\S {2,}\S")
_MARK = re.compile(
    r"(?:&#?\w+;|[^\w\s'’\"()\[\]{}.,]|[\x1c-\x1f]|_{2,})+"
)  # signs that no name needs: HTML's too, and "__"

Advice: TypeAlias = tuple[str | Setting, ...]

NO_HEADER: Advice = (
    ". Pass ",
    Setting("header", False),
    " for a table with no header: the columns are then named 1, 2 and so on",
)
_LIST_OF_NAMES: Advice = ("Give the names of each path without them", PythonAdvice(", as a list"))
_AS_LINKS: Advice = ("Give its links as a table with the columns parent and child", PythonAdvice(" to from_edges"))
_COLUMNS_OF_SPACES: Advice = (
    "Write it as CSV",
    PythonAdvice(": from_paths(pandas.read_fwf(path, header=None)) reads lines without a header"),
)
_OUTLINE: Advice = ("Pass ", Setting("form", "outline"))


@dataclass(frozen=True)
class Structure:
    """A structure that lines have.

    Attributes:
        what: What the lines are, for a message.
        advice: How to read it.
        sep: The separator, of paths; ``None`` for what is not read as paths.
        n_lines: The number of lines that have the separator.
        in_names: Whether the separator is common in names, so that it is not taken unless it is given.
    """

    what: str
    advice: Advice = ()
    sep: str | None = None
    n_lines: int = 0
    in_names: bool = False

    def refusal(self, lines: Sequence[str], expected: str = "one path per line") -> ReaderError:
        """Return the error for lines that have this structure."""
        return ReaderError(f"text: got {self.what}, {brief(lines[0])}; expected {expected}. ", *self.advice, ".")


def structures(lines: Sequence[str], *, bare: bool = True) -> list[Structure]:
    """Return the structures that fit the lines, the best first; none for a plain list of names.

    Example:
        >>> [(found.sep, found.n_lines) for found in structures(["k__A; p__B", "k__A; p__C/D"])]
        [(';', 2)]
        >>> structures(["Food", "  Fruit", "  Bread"])[0].what
        'an outline'
    """
    if not lines:
        return []
    text = "\n".join(lines)
    other = _other_format(lines, text) if bare else None
    other = other or _wrapped(lines)
    if other is not None:
        return [other]
    marks = _marks(lines, text)
    n_lines = 0 if not marks or marks[0].in_names else marks[0].n_lines
    if bare:
        other = _outline(lines, text, n_lines)
        if other is None and (not n_lines or marks[0].sep == ";" or _is_delimiter(lines, "\t")):
            other = _layout(lines, marks)
    return [other, *marks] if other is not None else marks


def refuse_other_formats(text: str, expected: str = "a table with a header") -> None:
    """Raise an error for text of another format."""
    lines = [line for line in text[:100_000].splitlines() if line.strip() and not line.startswith("#")]
    if lines and (found := _other_format(lines, text)) is not None:
        raise found.refusal(lines, expected)


def _starting(lines: Sequence[str], pattern: str) -> bool:
    return re.match(pattern, lines[0].lstrip(), re.IGNORECASE) is not None


def _other_format(lines: Sequence[str], text: str) -> Structure | None:
    """Return the format of text that is neither paths nor a table, by its first and last characters."""
    first, last = lines[0].strip(), lines[-1].strip()
    if "\0" in text:
        return Structure("text with NUL characters", ("Save it as UTF-8",))
    if first.startswith(("{", "[")) and last.endswith(("}", "]", "},", "],")) and not _starting(lines, r"\[\w+\]$"):
        return Structure("JSON", ("Give it in a file that ends in .json", _from("from_json")))
    if first.startswith("(") and last.endswith(";"):
        return Structure("a Newick tree", ("Give it in a file that ends in .nwk", _from("from_newick")))
    if first.startswith("<") and last.endswith(">") and not all(line.strip().endswith(">") for line in lines):
        return Structure("XML", _AS_LINKS)
    if _starting(lines, r"format-version:|\[(term|typedef)\]$"):
        return Structure(
            "an ontology in OBO",
            (*_AS_LINKS, PythonAdvice(", or Hierarchy.from_networkx(obonet.read_obo(path).reverse())")),
        )
    if _starting(lines, r"@prefix\b|@base\b|prefix\s+\w*:|<[^>\s]+>\s+<[^>\s]+>\s.*\.$"):
        return Structure(
            "RDF", ("Give it as a table with the columns subject, predicate and object", PythonAdvice(" to from_edges"))
        )
    if _starting(lines, r"(strict\s+)?(di)?graph\b[^>|/;]*[\[{]?$"):
        return Structure("a graph in DOT or GML", (*_AS_LINKS, PythonAdvice(", or read it with networkx")))
    if _starting(lines, r"\\[a-z]+\s*[\[{]|\\item\b|\\documentclass"):
        return Structure("LaTeX", ("Give each line its path", " with > between the names"))
    if _starting(lines, r"\[1\]\s"):
        return Structure("an R printout", ("Write the table with write.csv",))
    return _of_models_and_languages(lines, text)


def _of_models_and_languages(lines: Sequence[str], text: str) -> Structure | None:
    """Return the structure of a ``.pomdp`` file, or of a multilingual taxonomy as Open Food Facts writes it."""
    if len(set(re.findall(r"^(discount|states|actions|observations)\s*:", text, re.MULTILINE))) > 2:
        return Structure(
            "a POMDP file", ("Give a tree; the command solve reads models", PythonAdvice(", and so does read_pomdp"))
        )
    languages = [found.group(1) for line in lines if (found := _LANGUAGE.match(line))]
    if 10 * len(languages) > 9 * len(lines) and 1 < len(set(languages)) < len(languages):
        return Structure("names by language, as Open Food Facts writes a taxonomy", _AS_LINKS)
    return None


def _from(method: str) -> PythonAdvice:
    return PythonAdvice(f", or to {method}")


def _wrapped(lines: Sequence[str]) -> Structure | None:
    """Return the marks that every line stands in, such as quotes or brackets."""
    first = lines[0].strip()
    start, end = first[:1], _PAIRS.get(first[:1], "")
    if not end or len(first) < 2:
        return None
    if all((bare := line.strip()).startswith(start) and bare.endswith(end) and len(bare) > 1 for line in lines):
        return Structure(f"lines that stand in {start} and {end}", _LIST_OF_NAMES)
    return None


def _marks(lines: Sequence[str], text: str) -> list[Structure]:
    """Return the fitting separators, the most frequent first, without those inside its segments."""
    counts = {
        sep: sum([sep in line for line in lines])
        for sep in _SEPARATORS
        if all(mark in text for mark in sep) and sep in text  # single marks first: they are found much faster
    }
    if "\t" in counts:  # not of an indentation
        counts["\t"] = sum("\t" in line.strip() for line in lines)
    fitting = [sep for sep in counts if sep in ">|" or _fits(lines, sep, counts[sep])]
    fitting = [
        sep
        for sep in fitting
        if not any(sep != whole and sep in whole and counts[sep] <= counts[whole] for whole in fitting)
    ]
    if fitting != ["\\"]:  # it may escape others
        fitting = [sep for sep in fitting if sep != "\\"]
    fitting.sort(key=lambda sep: -counts[sep])
    kept = fitting[:1] + [sep for sep in fitting[1:] if sep in ">|" or not _is_within(lines, sep, fitting[0])]
    if kept:
        kept[0] = _whole_mark(lines, kept[0])
        counts[kept[0]] = counts.get(kept[0], counts[fitting[0]])
        return [Structure(f"separator {brief(sep)}", sep=sep, n_lines=counts[sep]) for sep in kept]
    counts |= {sep: sum(sep in line for line in lines) for sep in (*_IN_NAMES, *_unknown_marks(lines)) if sep in text}
    return [
        Structure(f"separator {brief(sep)}", sep=sep, n_lines=count, in_names=True)
        for sep, count in sorted(counts.items(), key=lambda pair: -pair[1])
        if 2 * count > len(lines) > 1 or sep in _SEPARATORS
    ]


def _whole_mark(lines: Sequence[str], sep: str) -> str:
    """Return the mark that contains a separator in all of the first lines, such as ``&gt;`` for ``;``."""
    wholes = {mark for line in lines[:100] for mark in _MARK.findall(line.strip()) if sep in mark}
    whole = wholes.pop() if len(wholes) == 1 else sep
    return sep if "\\" in whole or whole.strip("-&") == sep.strip("-&") else whole  # a backslash escapes


def _unknown_marks(lines: Sequence[str]) -> list[str]:
    """Return marks between names in more than half of the first lines, beside the known separators."""
    sample = [line.strip() for line in lines[:100]]
    counts = Counter(mark for line in sample for mark in {m.group() for m in _MARK.finditer(line) if m.start() > 0})
    known = {"-", "&", "/", *(sep.strip() for sep in _IN_NAMES)}
    return [mark for mark, count in counts.items() if 2 * count > len(sample) and mark not in known]


def _fits(lines: Sequence[str], sep: str, count: int) -> bool:
    """Whether half of the lines have this separator, or lines that share what stands before it."""
    if 2 * count >= len(lines):
        return True
    tops = [line.partition(sep)[0].strip() for line in lines if sep in line]
    return len(set(tops)) < len(tops) or not {line.strip() for line in lines}.isdisjoint(tops)


def _is_within(lines: Sequence[str], sep: str, best: str) -> bool:
    """Whether a separator stands in some of the lines of another alone."""
    held = [sep in line for line in lines if best in line]
    return sum(held) < len(held) and not any(sep in line for line in lines if best not in line)


def _outline(lines: Sequence[str], text: str, n_parted: int) -> Structure | None:
    """Return the structure that indentation, bullets or drawn branches show; lines that are all parted have none."""
    is_any = any(mark.isspace() for mark in {line[:1] for line in lines})
    indents = {len(line) - len(line.lstrip()) for line in lines} if is_any else {0}
    is_indented = len(indents) > 1 and n_parted < len(lines)
    is_drawn = any(mark in text for mark in "├└╰-") and _DRAWN.search(text)
    if not (is_indented or is_drawn or all(map(_BULLET.match, lines))):
        return None
    if any(":" in line for line in lines) and all(re.match(r"\s*-\s|.*:(\s|$)", line) for line in lines):
        return Structure("YAML", ("Give it as JSON", PythonAdvice(": from_json(yaml.safe_load(text))")))
    if lines[0][:1].isspace() and 0 in indents:
        return Structure("columns of spaces", _COLUMNS_OF_SPACES)
    return Structure("an outline", _OUTLINE)


def _layout(lines: Sequence[str], marks: Sequence[Structure]) -> Structure | None:
    """Return the layout of lines that no sure separator parts: a table, links, codes, columns of spaces."""
    delimiter = next((mark for mark in "\t;," if _is_delimiter(lines, mark)), None)
    if delimiter is not None and not (
        delimiter == ";" and marks and (len({line.partition(";")[0] for line in lines}) < len(lines))
    ):
        n_columns = lines[0].count(delimiter) + 1
        advice: Advice = (
            "Name its columns with ", Setting("item"), " and ", Setting("path"), ", or with ", Setting("levels"),
            "; or read it as edges or parents", *NO_HEADER,
        )  # fmt: skip
        if delimiter == ",":
            advice = (*advice, ". Pass ", Setting("sep", ","), " if each line is a path")
        return Structure(f"a table of {n_columns} columns parted by {brief(delimiter)}", advice)
    pairs = [line.split() for line in lines]
    if (
        len(lines) > 2
        and all(len(pair) == 2 for pair in pairs)
        and not {a for a, _ in pairs}.isdisjoint(b for _, b in pairs)
    ):
        advice = ("Read it as edges, with ", Setting("header", False), " and ", Setting("delimiter", " "))
        return Structure("pairs of names, as of links", advice)
    if all(map(_CODE.match, lines)) and len(lines) > 1:
        return Structure(
            "codes before names",
            (
                "Give a table with the columns item and path, whose path is the code, and pass ",
                Setting("sep", "."),
                " if dots part the codes; else a table with the columns id and parent",
            ),
        )
    if len(lines) > 1 and all(map(_COLUMNS.search, lines)):
        return Structure("columns of spaces", _COLUMNS_OF_SPACES)
    return None


def _is_delimiter(lines: Sequence[str], mark: str) -> bool:
    count = lines[0].count(mark)
    return count > 0 and len(lines) > 1 and all(line.count(mark) == count for line in lines)


def outline_levels(lines: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the path of each line of an outline: by indentation, bullets, heading marks or drawn branches.

    Example:
        >>> outline_levels(["Food", "├── Fruit", "│   └── Apple", "└── Bread"])[2:]
        [('Food', 'Fruit', 'Apple'), ('Food', 'Bread')]
    """
    above: list[tuple[int, str]] = []
    found = []
    for row, line in enumerate(lines, 1):
        line = line.expandtabs()
        mark = _BRANCH.match(line)
        depth = 0 if mark is None else mark.end()
        name = line[depth:].strip()
        if not name:
            raise ReaderError(f"row {row}: got {brief(line)}; expected a name. Remove the line.")
        closed = None
        while above and above[-1][0] >= depth:
            closed = above.pop()[0]
        if closed is not None and closed > depth:
            levels = [level for level, _ in above]
            raise ReaderError(
                f"row {row}: got {brief(name)} behind {depth} characters; expected the indentation of a line above, "
                f"{listed([*levels, closed])}. Indent it as its siblings."
            )
        above.append((depth, name))
        found.append(tuple(name for _, name in above))
    return found
