"""Names that act where they are printed, unless something makes them safe."""

from pomdp_hier._text import visible

NASTY = [
    "\x1b[31mred",
    "nul\x00",
    "back\rover",
    "two\nlines",
    "line\u2028separator",
    "\u202ereversed",
    'quote" ]; evil [label="',
    "\\",
    "\\N\\G\\l",
    "\\input{/etc/passwd}",
    "$x_1^2$ & 5% ~ #2 {",
    "%%{init: {'theme': 'dark'}}%%",
    '"]; click n0 "javascript:alert(1)"',
    "`**bold**`",
    "<script>alert(1)</script>",
    "&amp; &#35; #35; #quot;",
    "a|b",
    "",
    " ",
    "end",
    "---",
    "-->",
    "日本 🙂",
]


def acts(text: str) -> list[str]:
    """Return the characters of the text, its own line breaks aside, that would act where it is printed."""
    return [c for line in text.split("\n") for c in line if visible(c) != c]
