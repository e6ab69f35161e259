"""The values of a controller in fractions, by elimination on sparse rows."""

from collections.abc import Iterable
from fractions import Fraction

from pomdp_hier.planning.certificates.exact_model import exact_model
from pomdp_hier.pomdp.problem import POMDP

Row = dict[int, Fraction]


def solve_in_fractions(
    problem: POMDP, actions: list[int], after: list[list[int]], without: Iterable[int] = ()
) -> list[list[Fraction | None]]:
    """Return ``[N][S]``, the value of each node in each state; ``None`` where an action is not legal.

    Args:
        problem: The problem.
        actions: ``[N]``, the index of each node's action.
        after: ``[N][O]``, the next node, -1 for none.
        without: The pairs ``k S + s`` of node and state without a value.
    """
    model = exact_model(problem)
    size = model.sizes[0]
    gamma = Fraction(*model.discount)
    rows: dict[int, Row] = {}
    rewards: dict[int, Fraction] = {}
    missing = set(without)
    for k, a in enumerate(actions):
        for s in range(size):
            legal, at = model.legal[s], k * size + s
            if legal is None:
                continue
            if a not in legal and len(model.legal) == size:
                missing.add(at)
                continue
            row: Row = {at: Fraction(1)}
            for o, entries in model.outcomes[a][s]:
                if after[k][o] >= 0:
                    for t, p in entries:
                        if actions[after[k][o]] not in (model.legal[t] or ()):
                            missing.add(at)
                        then = after[k][o] * size + t % size
                        row[then] = row.get(then, Fraction(0)) - gamma * Fraction(p, model.p_unit)
            rows[at], rewards[at] = row, Fraction(model.reward[a][s], model.r_unit)
    _spread(rows, missing)
    for at in missing:
        rows.pop(at, None)
    solved = _eliminate(rows, rewards)
    return [
        [None if k * size + s in missing else solved.get(k * size + s, Fraction(0)) for s in range(size)]
        for k in range(len(actions))
    ]


def _spread(rows: dict[int, Row], missing: set[int]) -> None:
    """Add all pairs that can reach one without a value."""
    before = -1
    while len(missing) != before:
        before = len(missing)
        missing.update(at for at, row in rows.items() if at not in missing and not missing.isdisjoint(row))


def _eliminate(rows: dict[int, Row], right: dict[int, Fraction]) -> dict[int, Fraction]:
    """Solve the equations; an unknown without a row is 0. The matrix is diagonally dominant."""
    rows = {at: {c: v for c, v in row.items() if c in rows} for at, row in rows.items()}
    users: dict[int, set[int]] = {at: set() for at in rows}
    for at, row in rows.items():
        for c in row:
            users[c].add(at)
    order = sorted(rows, key=lambda at: len(rows[at]) * len(users[at]))
    done: dict[int, None] = {}
    for pivot in order:
        row, top = rows[pivot], rows[pivot][pivot]
        for at in list(users[pivot]):
            if at == pivot or at in done:
                continue
            factor = rows[at].pop(pivot) / top
            for c, v in row.items():
                if c != pivot:
                    users[c].add(at)
                    rows[at][c] = rows[at].get(c, Fraction(0)) - factor * v
            right[at] -= factor * right[pivot]
        done[pivot] = None
    solved: dict[int, Fraction] = {}
    for pivot in reversed(done):
        rest = sum((v * solved[c] for c, v in rows[pivot].items() if c != pivot and c in solved), Fraction(0))
        solved[pivot] = (right[pivot] - rest) / rows[pivot][pivot]
    return solved
