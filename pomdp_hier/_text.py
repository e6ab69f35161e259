"""Text for messages: short values and lists, visible control characters, and escaping."""

import re
import reprlib
from collections.abc import Iterable
from itertools import islice
from unicodedata import category

_LINE_END = re.compile(r"\s*\n\s*")


class _Short(reprlib.Repr):
    """A ``repr`` of bounded length and depth, also of values whose own one fails."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.maxlevel = 4
        self.maxtuple = self.maxlist = self.maxset = self.maxfrozenset = self.maxdict = 10
        self.maxstring = self.maxother = limit

    def repr_int(self, x: int, level: int) -> str:
        return repr(x) if x.bit_length() < 200 else f"<an integer of {x.bit_length()} bits>"

    def repr_instance(self, x: object, level: int) -> str:
        plain = type(x).__repr__ is object.__repr__  # long, and another address each time
        return f"<{type(x).__name__} object>" if plain else super().repr_instance(x, level)


def brief(value: object, limit: int = 60) -> str:
    """Return the value's ``repr`` in at most ``limit`` characters, without the middle of a long text."""
    text = _LINE_END.sub(" ", _Short(limit).repr(value))  # of arrays and tables
    return text if len(text) <= limit else text[: limit - 3] + "..."


def shown(value: object, limit: int = 40) -> str:
    """Return what ``print`` shows of a value whose class has its own text; of any other, its `brief` text."""
    if type(value).__str__ in (object.__str__, str.__str__, BaseException.__str__):
        return brief(value, limit)
    try:
        return shortened(visible(str(value)), limit)
    except Exception:  # noqa: BLE001  # the text of a class that is not ours
        return brief(value, limit)


def listed(values: Iterable[object], *, count: int | None = None, limit: int = 5) -> str:
    """Return the first values in brief, and the number of all if that is larger."""
    if count is None:
        values = list(values)
        count = len(values)
    text = ", ".join(brief(value) for value in islice(values, limit))
    return text if count <= limit else f"{text}, ... ({count:,} in all)"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return the count with its noun: ``1 node``, ``3 nodes``."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def short_percent(share: float) -> str:
    """Return a share in percent, to two significant digits below 10 %.

    Example:
        >>> short_percent(0.0061), short_percent(0.28), short_percent(1.0)
        ('0.61 %', '28 %', '100 %')
    """
    return f"{100 * share:z.0f} %" if share >= 0.0995 else f"{100 * share:.2g} %"


# Control characters, line and paragraph separators, controls of the writing direction (which reach beyond the name that
# holds them), and halves of characters, which no encoding takes. Joiners stay: emoji and several scripts need them.
_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""Return the text with control characters as escape sequences."""
    return _HIDDEN.sub(lambda found: ascii(found[0])[1:-1], text)


def shortened(text: str, most: int) -> str:
    """Return the text in at most ``most`` characters, without its middle; below 12 without its end.

    No mark, joiner or skin tone is parted from what it belongs to.
    """
    if len(text) <= most:
        return text
    tail = (most - 1) // 2 if most >= 12 else 0
    head, rest = max(most - 1 - tail, 0), len(text) - tail
    while head and _belong_together(text[head - 1], text[head]):
        head -= 1
    while rest < len(text) and _belong_together(text[rest - 1], text[rest]):
        rest += 1
    return f"{text[:head]}…{text[rest:]}"


def shortened_path(text: str, most: int, separator: str = " / ") -> str:
    """Return a path in at most ``most`` characters, without its first parts; a name without its middle.

    Example:
        >>> shortened_path("Food / Drinks / Tea / Green tea", 20), shortened_path("Food / Green tea", 20)
        ('… / Tea / Green tea', 'Food / Green tea')
    """
    parts = text.split(separator)
    while len(text) > most and len(parts) > 1:
        parts = parts[1:]
        text = separator.join(["…", *parts])
    return text if len(text) <= most else shortened(parts[-1], most)


def _belong_together(one: str, following: str) -> bool:
    joiner = "\u200d"
    return joiner in (one, following) or category(following)[0] == "M" or "\U0001f3fb" <= following <= "\U0001f3ff"


# --- escaping -------------------------------------------------------------------------------------------------------

_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_LATEX |= {c: "\\" + c for c in "&%$#_{}"}
_LATEX |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
# What ends a string of Mermaid, begins one of its entities, directives (%%{init: …}) Markdown or formulas, or is HTML.
_MERMAID = re.compile("[&<>\"'#|%{};`$\\\\]")


def in_html(text: str) -> str:
    """Return the text for HTML.

    Example:
        >>> print(in_html("<a> & 'b'"))
        &lt;a&gt; &amp; 'b'
    """
    return visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def in_dot(*lines: str) -> str:
    r"""Return the lines as a quoted string of Graphviz, which knows the entities of HTML in these as well."""
    escaped = (visible(line).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join(escaped) + '"'


def in_mermaid(text: str) -> str:
    """Return the text for a quoted string of Mermaid."""
    return _MERMAID.sub(lambda found: f"#{ord(found[0])};", visible(text))


def in_latex(text: str) -> str:
    r"""Return the text for LaTeX."""
    return "".join(_LATEX.get(c, c) for c in visible(text))
