"""Every output of an AND-OR tree, with names that would act in it: it compiles, and what one reads is the name."""

import html
import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET

import pytest

from pomdp_hier import POMDP
from pomdp_hier._text import in_dot, in_latex, in_mermaid, visible
from pomdp_hier.planning import AndOrTree
from tests.nasty import NASTY, acts


def nasty_tree(names: list[str] = NASTY) -> AndOrTree:
    """A belief over all the names, an action and an observation of each."""
    problem = POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: dict.fromkeys(names, 1 / len(names)) if a == names[0] else names[0],
        reward=lambda s, a: float(s == a),
        initial_belief=dict.fromkeys(names, 1 / len(names)),
        legal_actions=names,
    )
    return AndOrTree.build(problem, depth=1)


def small(name: str) -> AndOrTree:
    """The same with one name, whose belief is written as a vector under a header."""
    return nasty_tree([name, "x"])


def test_text_and_its_html_hold_no_character_that_acts():
    tree = nasty_tree()
    for text in (tree.to_text(), tree.to_text(ascii_only=True), tree.to_text(full=False, limit=5), tree.explain()):
        assert acts(text) == []
    assert len(tree.to_text().splitlines()) == len(tree)  # no name breaks a line
    for name in NASTY:
        assert visible(name) in tree.to_text()
        page = ET.fromstring(small(name)._repr_html_().replace("&quot;", '"'))
        assert "".join(page.itertext()) == small(name).to_text(full=False)


@pytest.mark.parametrize("name", NASTY)
def test_a_string_of_dot_is_one_string(name):
    quoted = in_dot(name)
    assert acts(quoted) == []
    assert re.fullmatch(r'"(\\.|[^"\\])*"', quoted)
    assert html.unescape(re.sub(r"\\(.)", r"\1", quoted[1:-1])) == visible(name)


def test_dot_is_drawn_with_the_names_as_they_are():
    if shutil.which("dot") is None:
        pytest.skip("Graphviz is not installed")
    for tree in (nasty_tree(), *map(small, NASTY)):
        dot = tree.to_dot(full=True)
        assert acts(dot) == []
        run = subprocess.run(["dot", "-Tsvg"], input=dot, capture_output=True, text=True, check=True)
        assert run.stderr == ""
        assert run.stdout.count('class="node"') == len(tree)
        shown = "".join("".join(ET.fromstring(run.stdout).itertext()).split())
        for child in tree.and_nodes:
            assert "".join(visible(child.action).split()) in shown


def test_mermaid_holds_each_name_as_a_quoted_string():
    for name in NASTY:
        text = in_mermaid(name)
        assert acts(text) == []
        assert not set(text) & set("\"<>%{}`$|\\&'")
        assert html.unescape(re.sub(r"#(\d+);", r"&#\1;", text)) == visible(name)
    tree = nasty_tree()
    lines = tree.to_mermaid(full=True).split("\n")
    for line in lines[1:-3]:
        assert re.fullmatch(r'  n\d+(>"[^"]*"\]|\(\("[^"]*"\)\)| (-->|==>)(\|"[^"]*"\|)? n\d+)', line), line
    assert "%%" not in "".join(lines)


def test_tikz_holds_each_name_as_text():
    tree = nasty_tree()
    tikz = tree.to_tikz(full=True, standalone=True)
    assert acts(tikz) == []
    assert r"\input" not in tikz
    assert r"\textbackslash{}input\{/etc/passwd\}" in tikz
    for name in NASTY:
        text = in_latex(name)
        bare = re.sub(r"\\(text[a-z]+\{\}|[&%$#_{}])", "", text)
        assert not set(bare) & set("\\&%$#_{}~^"), name
    find = shutil.which("kpsewhich")
    if (
        shutil.which("lualatex")
        and find
        and not subprocess.run([find, "standalone.cls"], stdout=subprocess.PIPE).returncode
    ):
        run = subprocess.run(["lualatex", "-halt-on-error", "-draftmode"], input=tikz, capture_output=True, text=True)
        assert run.returncode == 0, run.stdout[-2000:]


def test_a_symbol_is_not_a_command_of_latex():
    sympy = pytest.importorskip("sympy")
    evil, x = sympy.symbols(r"\input{/etc/passwd} x", positive=True)
    tree = small("a")
    tree.and_nodes[0].reward = evil * x + sympy.Symbol("\x1b[31m")
    assert r"\input" not in tree.to_tikz()
    assert acts(tree.to_tikz() + tree.to_text() + tree.to_dot() + tree.to_mermaid() + tree.explain()) == []


def test_json_keeps_the_names():
    tree = nasty_tree()
    document = json.loads(tree.to_json())
    assert [state for state, _ in document["or_nodes"][0]["belief"]] == NASTY
    assert [node["action"] for node in document["and_nodes"]] == NASTY
