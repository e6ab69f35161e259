"""The table of what is fuzzed: one row a reader. To add one: seeds, the function that reads, words, and its name.

Seeds are small; imports stand inside the functions, so that a reader costs nothing where another one is fuzzed.
"""

from pathlib import Path

from tests.fuzz.harness import Reader

__all__ = ["READERS"]


# --- .pomdp files ------------------------------------------------------------------------------------------------

_TIGER = b"""# the tiger
discount: 0.95
values: reward
states: left right
actions: listen open-left open-right
observations: hear-left hear-right
start: 0.5 0.5
T: listen identity
T: open-left uniform
T: open-right : left : right 0.5
T: open-right : left : left 0.5
T: open-right : right reset
O: * uniform
O: listen
0.85 0.15
0.15 0.85
R: listen : * : * : * -1
R: open-left : left : * : * -100
R: open-left : right : right : hear-left 10
R: open-right : left
10 20
30 40
R: open-right : right : left
5 -5
"""
_MDP = b"""values: cost
states: 3
actions: 2
discount: 1
start exclude: 2
T: 0 identity
T: 1
.1 .2 .7
0 1 0
1e-3 0.999 0
R: 0 : 1 : 2 : * 3.5
R: 1 : 0
1 2 3
R: 1 : 1 : * 7
"""
_LOOSE = b"states:2 actions:1 observations:3 start include: 0 1\r\nT:*:*:* .5 O:0:0 1 0 0 O:0:1 - 0 +1 0 R:*:*:*:* - 5"


def _read_pomdp(path: Path) -> None:
    from pomdp_hier.pomdp.pomdp_file import read_pomdp

    problem = read_pomdp(path)
    if len(problem.states) * len(problem.all_actions) * len(problem.all_observations) < 100:
        problem.observation_probabilities(problem.initial_belief, problem.all_actions[0])
        assert problem.compiled.reward.size


def _read_exactly(path: Path) -> None:
    from pomdp_hier.pomdp.pomdp_file import read_pomdp

    read_pomdp(path, exact=True, normalize=True)


_POMDP_WORDS = (
    *("discount:", "values:", "states:", "actions:", "observations:", "start:", "start include:", "start exclude:"),
    *("T:", "O:", "R:", "uniform", "identity", "reset", "reward", "cost", " : ", "*", "0.5", "1.0", "2000000", "left"),
)

_ALL = (
    Reader("pomdp-file", lambda: [_TIGER, _MDP, _LOOSE], _read_pomdp, ".pomdp", _POMDP_WORDS),
    Reader("pomdp-file-exact", lambda: [_TIGER, _MDP, _LOOSE], _read_exactly, ".pomdp", _POMDP_WORDS),
)

READERS = {reader.name: reader for reader in _ALL}
