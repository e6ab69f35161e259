"""Names that steer what they are written into, if they are let: terminals, markup, scripts, formulas, file formats."""

NASTY = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "\"><b onmouseover='alert(3)'>",
    "&lt;i&gt; &amp; co",
    "a\u2028b\rc\nd\x00e\x1b[31mf\x85g",
    "\u202egnp.exe\u2066",
    "{title} {0} %s $x$ \\",
    "$\\frac{1}$ and $",
    "_hidden",
    "half a character: \ud83d",
)
