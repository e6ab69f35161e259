"""What the tables of a page say, for tests."""

import re
from html import unescape

__all__ = ["rows_of"]


def rows_of(page: str, title: str) -> list[list[str]]:
    """The cells of the tables under a heading, row by row, those of folded parts after the others."""
    part = page.split(f"<h2>{title}</h2>")[1].split("<h2>")[0]
    rows = [row for body in part.split("<tbody>")[1:] for row in body.split("</tbody>")[0].split("</tr>")[:-1]]
    return [[unescape(re.sub("<.*?>", "", cell)) for cell in re.findall("<t[dh].*?</t[dh]>", row)] for row in rows]
