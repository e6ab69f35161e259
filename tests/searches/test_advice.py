"""Advice on recorded searches is taken: the table, the advice, the table with it taken, and what is read."""

import numpy as np
import pytest

from pomdp_hier import Hierarchy, fit_delta, read_searches
from pomdp_hier.errors import PomdpHierError

TREE = Hierarchy.from_paths({"lamp": "home > light", "towel": "home > bath", "tent": "garden"})
X = np.array([[1.0, 0.0], [0.8, 0.3], [0.0, 1.0]])
LONG = "searcher,item,step,node\nAnn,lamp,1,home\nAnn,lamp,2,home > light\nBob,tent,1,garden\n"
PATHS = "item,path\nlamp,home > light\ntent,garden\n"
LINKS = "from,to\nhome,light\nhome,bath\n"
OTHER = Hierarchy.from_paths({"lamp": "home", "towel": "home", "tent": "garden"})


def clicks(source, **settings):
    """The clicks, with the number of searches."""
    found = read_searches(source, TREE, **settings)
    return len(found.searchers), [TREE.labels[node][-1] if node >= 0 else None for node in found.nodes.tolist()]


def linked(links):
    return read_searches(PATHS, TREE, links=links).links.tolist()


BOTH = (2, ["home", "light", "garden"])
ADVICE = [  # a call, its advice, the same with the advice taken, and what is read
    (
        lambda: clicks(LONG.replace("item", "target of search")),
        "expected 'item'. Name it with columns=",
        lambda: clicks(LONG.replace("item", "target of search"), columns={"item": "target of search"}),
        BOTH,
    ),
    (
        lambda: clicks(LONG.replace("searcher", "who looked")),
        "expected 'searcher'. Name it with columns=",
        lambda: clicks(LONG.replace("searcher", "who looked"), columns={"searcher": "who looked"}),
        BOTH,
    ),
    (
        lambda: clicks(LONG, columns={"node": "node", "path": "node"}),
        "Leave one out",
        lambda: clicks(LONG, columns={"node": "node"}),
        BOTH,
    ),
    (
        lambda: clicks(PATHS, columns={"path": "path", "step": "item"}),
        "Leave it out",
        lambda: clicks(PATHS, columns={"path": "path"}),
        BOTH,
    ),
    (lambda: clicks(LONG.replace("2,home", ",home")), "row 2: got no step; expected a number or a time. Fill it in",
     lambda: clicks(LONG), BOTH),
    (lambda: clicks(rows(1, "9:30")), "expected all numbers or all times",
     lambda: clicks(rows("9:05", "9:30")), (1, ["home", "light"])),
    (
        lambda: clicks(LONG.replace("lamp,2", "lamp,1")),
        "For several searches for one item, name a column of searches",
        lambda: clicks(LONG.replace("lamp,2", "lamp,1").replace("Ann,lamp,1,home >", "Eve,lamp,1,home >"),
                       columns={"search": "searcher"}),
        (3, ["home", "light", "garden"]),
    ),
    (
        lambda: clicks(LONG, columns={"search": "step"}),
        "row 1: got one search for 'lamp', 'tent'; expected one item per search. Correct it, or name another column",
        lambda: clicks(LONG, columns={"search": "searcher"}),
        BOTH,
    ),
    (lambda: clicks(PATHS.replace("tent,", "tend,")), "item: got 'tend' in 1 search; .*Correct them",
     lambda: clicks(PATHS), BOTH),
    (
        lambda: clicks(PATHS.replace("tent,", "tend,")),
        "or leave these searches out: unknown_items=\"drop\"",
        lambda: clicks(PATHS.replace("tent,", "tend,"), unknown_items="drop"),
        (1, ["home", "light"]),
    ),
    (
        lambda: clicks("item,path,way\nlamp,x,home > light\ntent,y,garden\n"),
        "no node of the tree; .*Name the right column with columns=",
        lambda: clicks("item,path,way\nlamp,x,home > light\ntent,y,garden\n", columns={"path": "way"}),
        BOTH,
    ),
    (lambda: linked(LINKS.replace("from", "here")), "expected 'from' and 'to'. Rename them", lambda: linked(LINKS),
     sorted(TREE.node(("home", name)) for name in ("bath", "light"))),
    (lambda: linked("from,to\nhaus,licht\n"), "none between nodes of the tree; .*expected pairs of ids or paths",
     lambda: linked(LINKS), sorted(TREE.node(("home", name)) for name in ("bath", "light"))),
    (
        lambda: fit_delta(X, OTHER, read_searches(PATHS, TREE)),
        "expected those of the hierarchy. Read them with it",
        lambda: len(fit_delta(X, OTHER, read_searches(PATHS, OTHER), n_bootstrap=20).choices),
        2,
    ),
    (
        lambda: fit_delta(X, TREE, read_searches("item,path\nlamp,\n", TREE)),
        "expected a choice between children. Read other searches",
        lambda: len(fit_delta(X, TREE, read_searches(PATHS, TREE), n_bootstrap=20).choices),
        3,
    ),
]  # fmt: skip


def rows(*steps):
    return [{"searcher": "Ann", "item": "lamp", "step": step, "node": node} for step, node in
            zip(steps, (("home",), ("home", "light")), strict=True)]  # fmt: skip


@pytest.mark.filterwarnings("ignore::pomdp_hier.errors.HierarchyWarning", "ignore::pomdp_hier.errors.DataWarning")
@pytest.mark.parametrize(("call", "said", "better", "read"), ADVICE, ids=[row[1] for row in ADVICE])
def test_advice_that_is_taken_works(call, said, better, read):
    with pytest.raises(PomdpHierError, match=said):
        call()
    assert better() == read
