"""The language of the package: words that have a plainer one, and summary lines."""

import json
import re
from collections.abc import Iterator

import pytest

from tests.source_text import ROOT, sources

REPLACED = {  # what stood in drafts: what the field says
    r"(?:is|are) no (?!(?:longer|more|less|larger|smaller|better|worse|wider|such|need)\b)[a-z]+": "is not a",
    r"(?:one|row|name|number|key|value|file|line|column|seed|process|method|reader|format|module|command|matrix) an? "
    r"(?:item|row|node|level|policy|tree|step|case|call|file|worker|CPU|action|outcome|state|cluster|vector)": "per",
    r"hung|hang(?:s|ing)?": "attached, placed under, moved",
    r"earn(?:s|ed)?": "return, value",
    r"(?:un)?alike|likeness": "similar, similarity",
    r"fringes?": "leaf",
    r"(?:held|holds?|holding)\b[^.;:]{0,40}\bagainst": "compare with, check against",
    r"whole numbers?": "integer",
    r"process is over": "terminal",
    r"so (?:many|much)": "n",
    r"chances?(?! node)": "probability",
    r"(?:is|are) told|told (?:apart|by)": "reported, distinguished",
    r"endless(?:ly)?": "infinite-horizon",
    r"no say": "held out",
    r"mend(?:s|ed|ing)?": "fix",
    r"for ever": "indefinitely",
    r"rooms?(?! (?:for|on|to|there|with|of)\b)": "subpackage",
    r"stands? there twice": "is listed twice",
    r"of (?:one|the user)'s own": "custom",
    r"never heard of": "does not import",
    r"luck": "random numbers",
    r"clairvoyant": "hindsight (HQS), underlying MDP (POMDP)",
    r"inner nodes?": "internal node",
    r"live states?": "nonterminal state",
    r"machine code": "compiled",
    r"take out|taken out|takes out": "remove",
    r"what (?:it|they) (?:is|are) worth|is worth|are worth": "value",
    r"interchangeable": "duplicate",
    r"at the door|every door": "entry point",
    r"in so many words": "as text",
}


def prose() -> Iterator[tuple[str, str]]:
    """Yield places and their texts: docstrings without examples, other strings of several words, documents."""
    for source in sources():
        for line, text in source.prose:
            yield f"{source.path}:{line}", re.sub(r"(?m)^\s*(?:>>>|\.\.\.).*$", "", text)
    for path in sorted((ROOT / "pomdp_hier").rglob("*.html")):
        yield str(path.relative_to(ROOT)), path.read_text()
    for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/README.md"):
        yield name, (ROOT / name).read_text()
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for number, cell in enumerate(json.loads(path.read_text())["cells"]):
            if cell["cell_type"] == "markdown":
                yield f"{path.name}, cell {number}", "".join(cell["source"])


@pytest.fixture(scope="module")
def texts() -> list[tuple[str, str]]:
    return list(prose())


@pytest.mark.parametrize("pattern", REPLACED)
def test_a_replaced_word_does_not_come_back(pattern: str, texts: list[tuple[str, str]]) -> None:
    found = [
        f"{place}: {match.group()}" for place, text in texts for match in re.finditer(rf"\b(?:{pattern})\b", text, re.I)
    ]
    assert not found, f"write {REPLACED[pattern]!r} in place of {len(found)}: {found[:20]}"


def test_summary_lines_have_at_most_twenty_words() -> None:
    summaries = (
        (source.path, line, text.split("\n\n")[0].split()) for source in sources() for line, text in source.docstrings
    )
    long = [f"{path}:{line}: {len(words)} words" for path, line, words in summaries if len(words) > 20]
    assert not long, f"{len(long)}: {long[:20]}"


def sentences(docstring: str) -> Iterator[str]:
    """Yield the sentences, without examples, displayed formulas, tables and sources; code is one word."""
    text = re.sub(r"(?m)^ *>>>.*(?:\n.*\S.*)*", "", docstring)
    text = re.sub(r"``[^`]*``|`[^`]*`", "code", text)
    for block in re.split(r"\n\s*\n", text):
        if not block.startswith(("    ", "|", "Source", "Reference")):
            for part in re.split(r"\n(?= *(?:[-*] |[\w*, ]+(?: \([^)]*\))?: ))", block):
                yield from re.split(r"(?<=[.!?])[)\"']*\s+", " ".join(part.split()))


def test_sentences_have_at_most_twenty_five_words() -> None:
    text = "Do it (``a b``).\n\n    a + b\n\nArgs:\n    x: One two. Three.\n    y: Four\n        five.\n\n>>> 1\n1"
    assert list(sentences(text)) == ["Do it (code).", "Args:", "x: One two.", "Three.", "y: Four five.", ""]
    long = [
        f"{source.path}:{line}: {len(words)} words: {sentence}"
        for source in sources()
        for line, text in source.docstrings
        for sentence in sentences(text)
        if len(words := re.findall(r"\S*\w\S*", sentence)) > 25
    ]
    assert not long, "\n".join([f"{len(long)}:", *long])
