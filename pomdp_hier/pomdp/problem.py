"""POMDP: a problem from models, functions, arrays or an agent, as arrays and as tables of T, Z and R."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from html import escape
from numbers import Rational
from typing import Any

import pomdp_py
from numpy.typing import ArrayLike

from pomdp_hier._arguments import is_real
from pomdp_hier._text import brief
from pomdp_hier.errors import ModelError
from pomdp_hier.pomdp.array_models import arguments_from_arrays
from pomdp_hier.pomdp.belief import MASS_TOLERANCE, Belief
from pomdp_hier.pomdp.core import CorePOMDP
from pomdp_hier.pomdp.from_pomdp_py import arguments_from_agent
from pomdp_hier.pomdp.numeric import Number, is_symbolic, mean
from pomdp_hier.pomdp.tabular import TabularPOMDP, compile_problem

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

    Attributes:
        T: One table per action, the probability of each next state.
        Z: One table per action, the probability of each observation in each state that the action can lead to.
        R: One table ``R(s, a)``, or one per action ``R(s, a, s')`` where the reward depends on the next state.
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


class POMDP(CorePOMDP):
    """A finite partially observable Markov decision process ``<S, A, T, R, Z, O, gamma>``.

    States, actions and observations are any hashable values. Spaces that are not listed are found by following the
    models from the initial belief. `from_arrays` takes arrays, `from_agent` an agent of pomdp-py, and `read_pomdp` a
    ``.pomdp`` file.

    The names of a function's parameters decide its arguments, in any order. Known names are ``s`` or ``state``, ``a``
    or ``action``, ``next_state``, ``sp``, ``s2`` or ``t``, and ``o`` or ``obs``.
    `pomdp_hier.pomdp.signatures.KNOWN_NAMES` has all of them. Parameters with other names have the order below, if that
    leaves one reading.

    Args:
        transition: A `TransitionModel`, a function ``(state, action) -> {next_state: p}`` (or the one next state), or a
            dict ``{(state, action): …}``.
        observation: An `ObservationModel`, a function ``(next_state, action[, state]) -> {observation: p}``, or a dict.
        reward: A `RewardModel`, a function ``(state, action[, next_state[, observation]]) -> number``, or a dict.
        initial_belief: A `Belief` or a mapping from state to probability.
        discount: gamma in [0, 1].
        terminal: The terminal states, or a function of the state. A terminal state is absorbing with
            value 0, whatever the models return for it.
        legal_actions: The actions, if all are legal everywhere, or a function of the state.
        legal_by: The argument of that function: ``"state"``; ``"observation"`` (the last one, ``None`` at the start);
            or ``"belief"`` (such a problem cannot be compiled).
        actions: All actions in their order, where ``legal_actions`` is a function; the actions found by default.
        states: All states in their order; those reachable from the initial belief by default.
        observations: All observations in their order; the observations found by default.
        max_states: The largest number of states that exploration may find.
        tolerance: The largest distance from 1 of the sum of a row or of the initial belief; exact numbers must sum
            to 1.
        belief_reward: A function ``(belief[, action]) -> number`` that is added to the expected reward of each action,
            such as the negative entropy of the belief (a rho-POMDP). `RTBSS`, `AndOrTree`, `policy_value` and
            `simulate` use it. Named bounds do not hold for it, so that `RTBSS` then prunes by functions alone; what
            needs alpha vectors or pomdp-py raises `ModelError`.
        keep_rows: Whether the distributions of transition and observation depend on their arguments alone, so that each
            may be kept: a function is then called once for the same arguments. Rows of arrays are always kept.

    Raises:
        ModelError: An argument is invalid.
        ParameterError: ``keep_rows`` is not a bool.

    Example:
        >>> coin = POMDP(
        ...     transition=lambda s, a: s,
        ...     observation=lambda s, a: {s: 0.75, ("tails" if s == "heads" else "heads"): 0.25},
        ...     reward=lambda s, a: 1.0 if s == a else 0.0,
        ...     initial_belief={"heads": 0.5, "tails": 0.5},
        ...     legal_actions=["heads", "tails"],
        ... )
        >>> coin.states, coin.all_observations
        (('heads', 'tails'), ('heads', 'tails'))
        >>> coin.observation_probabilities(coin.initial_belief, "heads")
        {'heads': 0.5, 'tails': 0.5}

    References:
        Kaelbling, Littman and Cassandra (1998), section 3; Araya-Lopez et al. (2010), rho-POMDPs.
    """

    @classmethod
    def from_functions(cls, **models: Any) -> "POMDP":
        """Return a problem from plain functions and dicts; the arguments are those of the class.

        Example:
            >>> stay = POMDP.from_functions(transition=lambda s, a: s, observation=lambda s, a: "same",
            ...                             reward=lambda s, a: 1, initial_belief={"here": 1}, legal_actions=["wait"])
            >>> stay.states
            ('here',)
        """
        return cls(**models)

    @classmethod
    def from_arrays(
        cls,
        T: Any,
        Z: Any,
        R: Any,
        *,
        initial_belief: ArrayLike | Belief | None = None,
        discount: Number = 1,
        states: Sequence[Any] | None = None,
        actions: Sequence[Any] | None = None,
        observations: Sequence[Any] | None = None,
        terminal: Collection[Any] | Callable[[Any], bool] | None = None,
        tolerance: float = MASS_TOLERANCE,
    ) -> "POMDP":
        """Return the problem from ``T[a, s, s']``, ``Z[a, s', o]``, ``R[a, s]``, ``R[a, s, s']`` or ``R[a, s, s', o]``.

        Each of the three is an array (float, or object for fractions). T and Z may be sequences of scipy sparse
        matrices, one per action. R may be a `RewardModel` or a function of names. Names default to 0, 1, 2, …; the
        initial belief defaults to the uniform one.

        Raises:
            ModelError: Shapes do not agree, or a row is not a distribution (within ``tolerance``).

        Example:
            >>> two = POMDP.from_arrays(T=[[[0.5, 0.5], [0, 1]]], Z=[[[1, 0], [0, 1]]], R=[[1, 0]], discount=0.9)
            >>> two.successors(0, 0), two.expected_reward(0, 0)
            ({0: 0.5, 1: 0.5}, 1.0)
        """
        models = arguments_from_arrays(
            T,
            Z,
            R,
            initial_belief=initial_belief,
            states=states,
            actions=actions,
            observations=observations,
            tolerance=tolerance,
        )
        return cls(discount=discount, terminal=terminal, **models)

    @classmethod
    def from_agent(
        cls,
        agent: pomdp_py.Agent,
        *,
        discount: Number | None = None,
        terminal: Iterable[Any] | Callable[[Any], bool] | None = None,
        states: Sequence[Any] | None = None,
        actions: Sequence[Any] | None = None,
        observations: Sequence[Any] | None = None,
        legal_actions: Collection[Any] | Callable[[Any], Collection[Any]] | None = None,
        tolerance: float | None = None,
        normalize: bool = False,
        n_samples: int | None = None,
    ) -> "POMDP":
        """Return the problem of an agent with finite spaces, from its current belief.

        States, actions and observations stay the agent's objects. Models of this package are used unchanged. Other
        models give the ``probability`` of every member of the space, and the reward by ``sample``, which must not be
        random. Spaces that are not listed are found from the belief: ``sample`` finds the outcomes of each step until
        their probabilities sum to 1. `check_problem` compares samples with probabilities.

        Args:
            agent: The agent; of a ``pomdp_py.POMDP``, its ``.agent``.
            discount: gamma, by default 1, or that of the problem for an agent of `to_agent`.
            terminal: The terminal states, or a function of the state; pomdp-py has none.
            states, actions, observations: The spaces, if they should not be found from the belief.
            legal_actions: The legal actions, or a function of the state; those of the policy model by default.
            tolerance: The largest distance from 1 of the sum of a row, by default 1e-6, or that of the problem for an
                agent of `to_agent`.
            normalize: Whether to divide each row and the belief by its sum.
            n_samples: The number of samples whose frequencies make each row, for models without a correct
                ``probability``; exact where samples are always the same.

        Raises:
            ModelError: A space is not listed and cannot be sampled, a model is missing, or a setting has no effect.

        Example:
            >>> from pomdp_hier.problems import tiger
            >>> from pomdp_hier.pomdp import to_agent
            >>> POMDP.from_agent(to_agent(tiger())).successors("tiger-left", "listen")
            {'tiger-left': 1}
        """
        return cls(
            **arguments_from_agent(
                agent,
                discount=discount,
                terminal=terminal,
                states=states,
                actions=actions,
                observations=observations,
                legal_actions=legal_actions,
                tolerance=tolerance,
                normalize=normalize,
                n_samples=n_samples,
            )
        )

    @cached_property
    def compiled(self) -> TabularPOMDP:
        """The same problem as arrays, in float64; compiled once."""
        self.require_state_rewards("arrays, alpha vectors and bounds")
        return compile_problem(self)

    def tables(self) -> Tables:
        """Return T, Z and R as tables, which a notebook shows as HTML."""
        return Tables(self)


def require_problem(problem: object, where: str) -> None:
    """Raise an error unless the value is a `POMDP`."""
    if not isinstance(problem, POMDP):
        raise ModelError(
            f"{where}: got {brief(problem)}; expected a POMDP. Make one with POMDP(...) or read_pomdp(...)."
        )
