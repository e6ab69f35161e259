"""What other solvers print is read as they print it."""

from benchmarks.bounds import PEERS, at

SARSOP = """
 Time   |#Trial |#Backup |LBound    |UBound    |Precision  |#Alphas |#Beliefs
-------------------------------------------------------------------------------
 0.02    0       0        -19.9999    92.8205   112.82      3        1
 0.03    8       57       19.3714     19.3721   0.000688    14       13
-------------------------------------------------------------------------------
"""
ZMDP = """
00000      1 calls to solver, bounds [-20.0000 ..  32.5000], regret <= 52.5
00012    400 calls to solver, bounds [ 19.3711 ..  19.3720], regret <= 0.0009
00012 terminating run; reached target regret bound of 0.001
"""


def bounds(name, text):
    return [tuple(map(float, found.groups())) for found in map(PEERS[name].line.match, text.splitlines()) if found]


def test_the_lines_of_each():
    assert bounds("sarsop", SARSOP) == [(0.02, -19.9999, 92.8205), (0.03, 19.3714, 19.3721)]
    assert bounds("zmdp", ZMDP) == [(0, -20, 32.5), (12, 19.3711, 19.372)]


def test_the_line_at_a_moment():
    lines = bounds("sarsop", SARSOP)
    assert [at(lines, second) for second in (0, 0.02, 1)] == [None, lines[0], lines[1]]
    assert at([], 1) is None
