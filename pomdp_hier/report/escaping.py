"""Escaping of user text for HTML, script data and figures.

All markup is built here: by `filled` from a template, by `element` and by `joined`. Each escapes its arguments unless
they are markup (`Html`), so that no caller can forget it.
"""

import json
from collections.abc import Iterable
from functools import cache
from html import escape
from importlib import resources
from string import Formatter
from typing import Any

from pomdp_hier._text import shortened, visible


class Html(str):
    """Markup, which is not escaped again."""

    __slots__ = ()


def html_text(value: object) -> Html:
    """Return the value escaped for an element or a quoted attribute; markup is unchanged.

    Example:
        >>> html_text('<b>"&"</b>'), html_text(Html("<b>"))
        ('&lt;b&gt;&quot;&amp;&quot;&lt;/b&gt;', '<b>')
    """
    return value if isinstance(value, Html) else Html(escape(visible(str(value))))


def joined(parts: Iterable[object], between: str = "") -> Html:
    """Return the concatenated parts, each escaped unless it is markup.

    Example:
        >>> joined(["<", element("b", "x")])
        '&lt;<b>x</b>'
    """
    return Html(html_text(between).join(map(html_text, parts)))


def element(tag: str, *content: object, **attributes: object) -> Html:
    """Return an element with its content and attributes escaped.

    Args:
        tag: Its name.
        content: Its content.
        attributes: By name, ``_`` in place of ``-`` (and one at the end, after a word of Python's, dropped); an
            attribute that is ``None`` is left out.

    Example:
        >>> element("td", "1 < 2", class_="n", data_label='"the" figure', title=None)
        '<td class="n" data-label="&quot;the&quot; figure">1 &lt; 2</td>'
    """
    named = [
        f' {name.rstrip("_").replace("_", "-")}="{html_text(value)}"'
        for name, value in attributes.items()
        if value is not None
    ]
    return Html(f"<{tag}{''.join(named)}>{joined(content)}</{tag}>")


def filled(template: str, **slots: object) -> Html:
    """Return a template of this package with its slots, ``{name}`` or ``{name:,}``, filled and escaped.

    Args:
        template: The file's name in the folder ``templates``.
        slots: The content of each slot.
    """
    return Html(_Escaping().vformat(asset(template), (), slots))


class _Escaping(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        return html_text(format(value, format_spec) if format_spec else value)


def script_data(value: Any) -> Html:
    r"""Return the value as JSON for a ``script`` element, with ``<`` as an escape sequence.

    Example:
        >>> script_data(["</script>", "a&b"])
        '["\\u003c/script>","a&b"]'

    Raises:
        ValueError: A number is NaN or infinite, which JSON does not have.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Html(text.replace("<", "\\u003c"))


def figure_text(value: object, most: int = 60) -> str:
    """Return the value as one line of plain text of bounded length for a matplotlib figure.

    A dollar sign would begin a formula, and an underscore in front or nothing at all keep a label out of the legend.

    Example:
        >>> figure_text("$5 a_b"), figure_text("_end"), figure_text(""), figure_text("x" * 9, most=4)
        ('\\\\$5 a_b', ' _end', '""', 'xxx…')
    """
    text = shortened(visible(str(value)), most).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text or '""'


@cache
def asset(name: str) -> Html:
    """Return a file of the folder ``templates``: a style sheet, a script or a template."""
    return Html((resources.files("pomdp_hier.report") / "templates" / name).read_text(encoding="utf-8"))
