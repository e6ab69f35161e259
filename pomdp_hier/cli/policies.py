"""``pomdp-hier policies``: comparison of search policies on one hierarchy."""

import argparse
import json
from typing import Any

from pomdp_hier.cli import inputs
from pomdp_hier.errors import ParameterError

NAME = "policies"
SUMMARY = "compare search policies on a hierarchy: values, differences and regret to the hindsight policy"
EXAMPLES = (
    "printf 'x,y\\n1,0\\n2,1\\n0,1\\n1,3\\n' > points.csv",
    "echo '[[0,1],[2,3],[4,5]]' | pomdp-hier policies points.csv -",
    "echo '[[0,1],[2,3],[4,5]]' | pomdp-hier policies points.csv - --policy one-step --policy expand",
)

_RULES = ("one-step", "optimal", "descend", "search-root", "hindsight")
_PLANNED = ("expand", "max-0", "pouct", "pouct-environment")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    inputs.add_input_options(parser)
    inputs.add_setting_options(parser)
    add = parser.add_argument
    add(
        "--policy",
        action="append",
        metavar="NAME",
        help=f"a policy to compare, may be given several times, the first is the baseline: {', '.join(_RULES)}; "
        "level-N (descend to level N), look-ahead-N (plan N steps); and, planned in the POMDP of each item (slow): "
        f"{', '.join(_PLANNED)} (default: {', '.join(_RULES)})",
    )
    add("--confidence", type=float, default=0.95, metavar="X", help="the level of the intervals (default: 0.95)")
    add("--jobs", type=int, default=1, metavar="N", help="processes for planned policies, -1: one per CPU (default: 1)")
    add("--seed", type=int, default=0, metavar="N", help="random seed of pouct (default: 0)")
    add("--json", action="store_true", help="print the comparison as JSON")
    inputs.add_quiet(parser)


def run(options: argparse.Namespace) -> int:
    """Compare the policies."""
    names = list(dict.fromkeys(options.policy or _RULES))
    planned = bool(set(names) & set(_PLANNED))
    if not planned:
        inputs.refuse_unused(options, ("jobs", "seed"), "on policies that are not planned for each item")
    policies = {name: _policy(name, options.tie) for name in names}
    from pomdp_hier.analysis.comparison import compare_search_policies

    read = inputs.read_inputs(options)
    table = compare_search_policies(
        read.features,
        read.tree,
        policies,
        confidence=options.confidence,
        similarity=options.similarity,
        delta=options.delta,
        nu=options.nu,
        tie=options.tie,
        n_jobs=options.jobs,
        random_state=options.seed if planned else None,
        progress=True,
    )
    print(json.dumps(table.to_dict(), indent=1) if options.json else table)
    return 0


def _policy(name: str, tie: Any) -> Any:
    """Return the policy of a name.

    Raises:
        ParameterError: There is none.
    """
    if name in _RULES:
        return name
    kind, _, number = name.rpartition("-")
    if kind in ("level", "look-ahead") and number.isdecimal():
        from pomdp_hier._engines.task import LookAhead
        from pomdp_hier.hqs.policies import FixedLevel

        return FixedLevel(int(number)) if kind == "level" else LookAhead(int(number), tie)
    if name in ("expand", "max-0"):
        from pomdp_hier.hqs.policies import paper_readings

        return paper_readings(tie)[name]
    if name in ("pouct", "pouct-environment"):
        from pomdp_hier.hqs.policies import PlansInEnvironment
        from pomdp_hier.planning.pomdp_py_planners import POUCT

        return POUCT() if name == "pouct" else PlansInEnvironment(POUCT())
    expected = ", ".join((*_RULES, "level-N", "look-ahead-N", *_PLANNED))
    raise ParameterError(f"--policy {name}: expected one of {expected}")
