"""Cases of reports for tests, and what the tables of a page say."""

import re
from html import unescape

import numpy as np

from pomdp_hier.analysis.diagnosis import diagnose
from pomdp_hier.hierarchy import Hierarchy
from pomdp_hier.hqs.paper import PAPER_TABLE, load_amazon12
from pomdp_hier.improvement import improve
from pomdp_hier.report import write_report
from tests.planted import clean_case, misplaced

__all__ = ["SETTINGS", "SHOP", "diagnosis_of", "diagnosis_with", "filed_wrongly", "improved_case", "rows_of", "written"]

SHOP = load_amazon12()
SETTINGS = {"similarity": "precomputed", **PAPER_TABLE}


def written(path, diagnosis, **options):
    write_report(diagnosis, path, **options)
    return path


def diagnosis_of(letter):
    return diagnose(SHOP.similarity, SHOP.hierarchies[letter], **SETTINGS)


def diagnosis_with(letter, label):
    """The same of a tree whose nodes are called by a function of their numbers."""
    plain = SHOP.hierarchies[letter]
    labels = [label(k) for k in range(plain.n_nodes)]
    tree = Hierarchy.from_children(plain.to_children(), plain.n_items, labels=labels)
    return diagnose(SHOP.similarity, tree, **SETTINGS), labels


def filed_wrongly(n_clusters=6, per=8, label=lambda k: f"n{k}"):
    """Features of clusters, and a tree in two levels of groups with the first item of each odd cluster in the next."""
    home = np.repeat(np.arange(n_clusters), per)
    X = np.eye(n_clusters)[home] + 0.05 * np.random.default_rng(0).random((len(home), n_clusters))
    filed = home.copy()
    filed[:: 2 * per] = (filed[:: 2 * per] + 3) % n_clusters
    first = len(home)
    groups = [[first + c for c in range(n_clusters) if c % 2 == odd] for odd in (0, 1)]
    children = [np.flatnonzero(filed == c).tolist() for c in range(n_clusters)]
    children += [*groups, [first + n_clusters, first + n_clusters + 1]]
    labels = [label(k) for k in range(first + n_clusters + 3)]
    return X, Hierarchy.from_children(children, first, labels=labels), np.flatnonzero(filed != home)


def improved_case():
    X, tree = clean_case()
    broken, _ = misplaced(misplaced(tree, 0, -1)[0], 17, 5)
    return X, broken, improve(X, broken, delta=0.02, folds=2, kinds=["move"], expected_wrong=0.01)


def rows_of(page: str, title: str) -> list[list[str]]:
    """The cells of the tables under a heading, row by row, those of folded parts after the others."""
    part = page.split(f"<h2>{title}</h2>")[1].split("<h2>")[0]
    rows = [row for body in part.split("<tbody>")[1:] for row in body.split("</tbody>")[0].split("</tr>")[:-1]]
    return [[unescape(re.sub("<.*?>", "", cell)) for cell in re.findall("<t[dh].*?</t[dh]>", row)] for row in rows]
