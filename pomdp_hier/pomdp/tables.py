"""Tables of T, Z and R of a problem, as text and HTML."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from numbers import Rational
from typing import Any

from pomdp_hier._arguments import is_real
from pomdp_hier._text import brief
from pomdp_hier.pomdp.core import CorePOMDP
from pomdp_hier.pomdp.numeric import Number, is_symbolic, mean

NOT_LEGAL = "–"
NOTHING = ""

_STYLE = """<style>
.pomdp-tables{font:13px/1.45 system-ui,sans-serif;color:inherit;max-width:100%;overflow-x:auto}
.pomdp-tables h4{font-size:14px;margin:1.1em 0 .3em}
.pomdp-tables .row{display:flex;flex-wrap:wrap;gap:.6em 2em;align-items:flex-start}
.pomdp-tables table{border-collapse:collapse;margin:.2em 0 .8em;font-variant-numeric:tabular-nums}
.pomdp-tables caption{text-align:left;font-weight:600;padding:0 0 .25em;white-space:nowrap}
.pomdp-tables caption small{font-weight:400;opacity:.65}
.pomdp-tables th,.pomdp-tables td{padding:.22em .65em;text-align:right;white-space:nowrap;background:none;
border:0;vertical-align:middle}
.pomdp-tables thead th{border-bottom:1px solid currentColor;font-weight:500}
.pomdp-tables tbody th{text-align:left;font-weight:500;border-right:1px solid rgba(128,128,128,.5)}
.pomdp-tables thead th:first-child{text-align:left;font-weight:400;opacity:.65;
border-right:1px solid rgba(128,128,128,.5)}
.pomdp-tables tbody tr:hover{background:rgba(128,128,128,.12)}
.pomdp-tables .zero{opacity:.35}
.pomdp-tables .f{display:inline-block;text-align:center;vertical-align:middle;line-height:1.15;font-size:.9em}
.pomdp-tables .f i{display:block;font-style:normal;padding:0 .25em}
.pomdp-tables .f i+i{border-top:1px solid currentColor}
.pomdp-tables p{margin:.2em 0;opacity:.7}
</style>"""


@dataclass(frozen=True)
class Table:
    """One table with the names of rows and columns and the cells.

    Attributes:
        title: The title.
        corner: The heading of the rows and columns, such as ``s \\ s'``.
        columns: The names of the columns.
        rows: The names of the rows.
        cells: ``[rows][columns]``: numbers; ``None`` for an empty cell, a string unchanged.
        left_out: The numbers of rows and columns that are not shown.
    """

    title: str
    corner: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    cells: tuple[tuple[Number | None, ...], ...]
    left_out: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        grid = [[self.corner, *self.columns]]
        grid += [[name, *map(_text, row)] for name, row in zip(self.rows, self.cells, strict=True)]
        widths = [max(len(line[j]) for line in grid) for j in range(len(grid[0]))]
        lines = [
            "  ".join(
                [line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))]
            ).rstrip()
            for line in grid
        ]
        lines.insert(1, "-" * max(map(len, lines)))
        return "\n".join([self.title + _and_more(self.left_out), *("  " + line for line in lines)])

    def _repr_html_(self) -> str:
        return f'{_STYLE}<div class="pomdp-tables">{self.html()}</div>'

    def html(self) -> str:
        """Return the ``<table>`` alone, without the style."""
        head = "".join(f"<th>{escape(name)}</th>" for name in (self.corner, *self.columns))
        body = "".join(
            f"<tr><th>{escape(name)}</th>{''.join(map(_cell, row))}</tr>"
            for name, row in zip(self.rows, self.cells, strict=True)
        )
        more = f"<small>{escape(_and_more(self.left_out))}</small>"
        return (
            f"<table><caption>{escape(self.title)}{more}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>"
        )


class Tables:
    """T, Z and R of a problem as tables, for ``print`` and notebooks.

    Fractions are shown as fractions, expressions as expressions. Impossible steps are pale, and the row of an action
    that is not legal in a state is marked. A reward that depends on the next state is shown per step, as its mean over
    the observations.

    Args:
        problem: The problem.
        limit: The largest number of rows, columns and actions; the titles have the numbers left out.

    Attributes:
        T: One table per action, the probability of each next state.
        Z: One table per action, the probability of each observation in each state that the action can lead to.
        R: One table ``R(s, a)``, or one per action ``R(s, a, s')`` where the reward depends on the next state.

    Example:
        >>> from fractions import Fraction
        >>> from pomdp_hier import POMDP
        >>> p = Fraction(1, 3)
        >>> coin = POMDP(transition=lambda s, a: s, observation=lambda s, a: {s: 1 - p, "?": p}, reward=lambda s, a: 2,
        ...              initial_belief={"heads": p, "tails": 1 - p}, legal_actions=["look"])
        >>> print(Tables(coin).Z[0])
        Z(s', look, o)
          s' \\ o  heads    ?  tails
          -------------------------
          heads     2/3  1/3      0
          tails       0  1/3    2/3
    """

    def __init__(self, problem: CorePOMDP, *, limit: int = 24) -> None:
        self.problem = problem
        self.limit = limit
        self._actions = problem.all_actions[:limit]
        self.T, self.Z, self.R = self._transitions(), self._observations(), self._rewards()

    def _transitions(self) -> tuple[Table, ...]:
        """One table per action: the probability of each next state."""
        problem, shown = self.problem, self.problem.states[: self.limit]
        tables = []
        for action in self._actions:
            cells = []
            for state in shown:
                if not self._may(state, action):
                    cells.append([NOT_LEGAL] * len(shown))
                    continue
                row = problem.successors(state, action)
                cells.append([row.get(s, 0) for s in shown])
            tables.append(self._table(f"T(s, {action}, s')", "s \\ s'", problem.states, problem.states, cells))
        return tuple(tables)

    def _observations(self) -> tuple[Table, ...]:
        """One table per action: the probability of each observation in each state that the action can lead to."""
        problem = self.problem
        observations = problem.all_observations[: self.limit]
        tables = []
        for action in self._actions:
            keys = self._arrivals(action)
            cells = []
            for next_state, state in keys[: self.limit]:
                row = problem.observation_distribution(next_state, action, state)
                cells.append([row.get(o, 0) for o in observations])
            names = [str(t) if s is None else f"{t} from {s}" for t, s in keys]
            corner = "s' \\ o" if not problem.observation.uses_state else "s' from s \\ o"
            tables.append(self._table(f"Z(s', {action}, o)", corner, names, problem.all_observations, cells))
        return tuple(tables)

    def _rewards(self) -> tuple[Table, ...]:
        """One table ``R(s, a)``, or one per action ``R(s, a, s')`` where the reward depends on the next state."""
        problem = self.problem
        states, actions = problem.states[: self.limit], self._actions
        if not problem.reward_model.uses_next_state and not problem.reward_model.uses_observation:
            cells = [[problem.expected_reward(s, a) if self._may(s, a) else NOT_LEGAL for a in actions] for s in states]
            return (self._table("R(s, a)", "s \\ a", problem.states, problem.all_actions, cells),)
        tables = []
        for action in self._actions:
            cells = [[self._step_reward(s, action, t) for t in states] for s in states]
            tables.append(self._table(f"R(s, {action}, s')", "s \\ s'", problem.states, problem.states, cells))
        return tuple(tables)

    def _step_reward(self, state: Any, action: Any, next_state: Any) -> Number | None:
        problem = self.problem
        if not self._may(state, action):
            return NOT_LEGAL
        if problem.is_terminal(state) or problem.successors(state, action).get(next_state, 0) == 0:
            return None
        if not problem.reward_model.uses_observation:
            return problem.step_reward(state, action, next_state)
        seen = problem.observation_distribution(next_state, action, state)
        rewards = [(p, problem.step_reward(state, action, next_state, o)) for o, p in seen.items() if p != 0]
        return mean(rewards, lambda: f"reward of {brief(action)} in {brief(state)}")

    def _may(self, state: Any, action: Any) -> bool:
        return self.problem.is_terminal(state) or action in self.problem.possible_actions(state)

    def _arrivals(self, action: Any) -> list[tuple[Any, Any]]:
        """Return the reachable next states, with the previous state where observations depend on it."""
        problem = self.problem
        met: dict[tuple[Any, Any], None] = {}
        for state in problem.states:
            if not problem.is_terminal(state) and self._may(state, action):
                for next_state in problem.successors(state, action):
                    met.setdefault((next_state, state if problem.observation.uses_state else None))
        order = {s: i for i, s in enumerate(problem.states)}
        return sorted(met, key=lambda key: (order[key[0]], order.get(key[1], -1)))

    def _table(
        self, title: str, corner: str, rows: Sequence[Any], columns: Sequence[Any], cells: Sequence[Sequence[Any]]
    ) -> Table:
        """Return the table of the first rows and columns, with cells from a function."""
        names, headings = (tuple(map(str, part[: self.limit])) for part in (rows, columns))
        left_out = (len(rows) - len(names), len(columns) - len(headings))
        return Table(title, corner, headings, names, tuple(map(tuple, cells)), left_out)

    def __str__(self) -> str:
        parts = [self._summary()]
        for tables in (self.T, self.Z, self.R):
            parts += map(str, tables)
        return "\n\n".join(parts)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        sections = [("Transition", self.T), ("Observation", self.Z), ("Reward", self.R)]
        body = "".join(
            f'<h4>{name}</h4><div class="row">{"".join(table.html() for table in tables)}</div>'
            for name, tables in sections
        )
        return f'{_STYLE}<div class="pomdp-tables"><p>{escape(self._summary())}</p>{body}</div>'

    def _summary(self) -> str:
        problem = self.problem
        ends = [str(s) for s in problem.states if problem.is_terminal(s)]
        start = ", ".join(f"{s}: {_text(p)}" for s, p in list(problem.initial_belief.items())[: self.limit])
        more = ", ..." if len(problem.initial_belief) > self.limit else ""
        hidden = len(problem.all_actions) - len(self._actions)
        more += f"; {hidden} actions not shown" if hidden else ""
        terminal = f"; terminal: {', '.join(ends[: self.limit])}" if ends else ""
        return (
            f"{len(problem.states)} states, {len(problem.all_actions)} actions, {len(problem.all_observations)} "
            f"observations, discount {_text(problem.discount)}; start: {start}{more}{terminal}"
        )


def _and_more(left_out: tuple[int, int]) -> str:
    parts = [f"{n:,} {what}" for n, what in zip(left_out, ("rows", "columns"), strict=True) if n]
    return f"  ({' and '.join(parts)} not shown)" if parts else ""


def _text(value: Number | None) -> str:
    """Return the text of a number, such as 1/3, 0.25 or an expression."""
    if value is None:
        return NOTHING
    if isinstance(value, str) or is_symbolic(value):
        return str(value)
    if isinstance(value, Rational):
        return str(Fraction(value))
    return f"{float(value):.5g}" if is_real(value) else brief(value)


def _cell(value: Number | None) -> str:
    if isinstance(value, Rational) and Fraction(value).denominator != 1:
        fraction = Fraction(value)
        sign = "&minus;" if fraction < 0 else ""
        return f'<td>{sign}<span class="f"><i>{abs(fraction.numerator)}</i><i>{fraction.denominator}</i></span></td>'
    pale = value is None or isinstance(value, str) or (not is_symbolic(value) and value == 0)
    text = escape(_text(value)).replace("-", "&minus;")
    return f'<td class="zero">{text}</td>' if pale else f"<td>{text}</td>"
