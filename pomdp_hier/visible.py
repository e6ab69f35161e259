"""Text from outside, kept on one line: no character of it can steer a terminal, a file format or the text around it."""

import re
from unicodedata import category

__all__ = ["shortened", "visible"]

# Control characters, line and paragraph separators, controls of the writing direction (which reach beyond the name that
# holds them), and halves of characters, which no encoding takes. Joiners stay: emoji and several scripts need them.
_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""Return the text with every character that is not to be seen, but acts, written as its escape sequence.

    Example:
        >>> visible("a\x1b[31mb\u2028c"), visible("Straße, 家, مرحبا")
        ('a\\x1b[31mb\\u2028c', 'Straße, 家, مرحبا')
    """
    return _HIDDEN.sub(lambda found: ascii(found[0])[1:-1], text)


def shortened(text: str, most: int) -> str:
    """Return the text with its middle left out where it is longer than so many characters; below 12, with its end.

    No mark, joiner or skin tone is parted from what it belongs to.

    Example:
        >>> shortened("nutritional anemias, unspecified", 21), shortened("nutritional", 6)
        ('nutritiona…nspecified', 'nutri…')
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


def _belong_together(one: str, following: str) -> bool:
    joiner = "\u200d"
    return joiner in (one, following) or category(following)[0] == "M" or "\U0001f3fb" <= following <= "\U0001f3ff"
