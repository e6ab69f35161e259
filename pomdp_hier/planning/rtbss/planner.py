"""RTBSS: real-time belief space search, a depth-limited look-ahead from the current belief.

The value of a leaf belief, after ``depth`` actions, is its ``leaf_value``; before it,
``V_d(b) = max_a R(b, a) + gamma sum_o Pr(o | b, a) V_{d-1}(tau(b, a, o))``. Actions are expanded in the order of an
upper bound, and those that cannot be optimal are pruned.
"""

import copy
import math
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pomdp_hier._arguments import check_choice, check_flag, check_integer, is_one_of, unexpected
from pomdp_hier._text import brief
from pomdp_hier.beliefs.updaters import BayesUpdater, TabularUpdater, as_updater
from pomdp_hier.errors import ParameterError, PlanningError
from pomdp_hier.planning.alpha_vectors import LeafVectors
from pomdp_hier.planning.bounds import bound_tables, reward_range
from pomdp_hier.planning.decision import Decision, best_and_tied, where_to_decide
from pomdp_hier.planning.leaf_values import ImmediateValue, has_vectors, leaf_function, leaf_vectors
from pomdp_hier.planning.point_based.solution import Solution
from pomdp_hier.planning.policies import HoldsPolicy, action_probabilities, as_policy, decided
from pomdp_hier.planning.pomdp_py_planners import AgentPlanner
from pomdp_hier.planning.rtbss.arrays import ArraySearch
from pomdp_hier.planning.rtbss.recursive import BudgetExhausted, PlainSearch, Pruning
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.numeric import Number, is_exact, is_nonnegative, is_symbolic
from pomdp_hier.pomdp.problem import POMDP
from pomdp_hier.pomdp.signatures import SIGNATURES, bind

_EXACT: weakref.WeakKeyDictionary[POMDP, tuple[bool, bool]] = weakref.WeakKeyDictionary()


def has_symbols(problem: POMDP) -> bool:
    """Return whether symbols occur in the models or the initial belief."""
    return _scanned(problem)[0] or any(is_symbolic(p) for p in problem.initial_belief.values())


def has_exact_numbers(problem: POMDP, belief: Belief) -> bool:
    """Return whether fractions or symbols occur in the belief or the models; integers count as floats.

    Example:
        >>> from fractions import Fraction
        >>> from pomdp_hier.problems import tiger
        >>> has_exact_numbers(tiger(), Belief({"tiger-left": Fraction(1, 3), "tiger-right": Fraction(2, 3)}))
        True
    """
    return any(map(_is_exact, belief.values())) or _scanned(problem)[1]


def _is_exact(value: Number) -> bool:
    return is_exact(value) and not isinstance(value, (int, np.integer))


def _scanned(problem: POMDP) -> tuple[bool, bool]:
    """Return whether symbols, and whether fractions or symbols, occur in the models."""
    if problem not in _EXACT:
        exact = False
        for value in _numbers(problem):
            if is_symbolic(value):
                _EXACT[problem] = True, True
                break
            exact = exact or _is_exact(value)
        else:
            _EXACT[problem] = False, exact
    return _EXACT[problem]


def _numbers(problem: POMDP) -> Iterator[Any]:
    """Yield the numbers of the models."""
    yield problem.discount
    seen: set[Any] = set()
    for state in problem.states:
        if problem.is_terminal(state):
            continue
        by_state = problem.legal_by == "state"
        for action in problem.actions(Belief.certain(state)) if by_state else problem.all_actions:
            yield problem.expected_reward(state, action)
            for next_state, probability in problem.successors(state, action).items():
                yield probability
                key = (next_state, action, state if problem.observation.uses_state else None)
                if key not in seen:
                    seen.add(key)
                    yield from problem.observation_distribution(next_state, action, state).values()


_BOUNDS = ("fib", "qmdp", "range")
_DEEPEST_RECURSION = 250  # each level takes two or three of Python's 1,000 frames
_FINEST_MERGING = 1e-15  # below it, probabilities near 1 differ by rounding alone


def _named(leaf_value: Any, upper_bound: Any, updater: Any) -> dict[str, bool]:
    """Return which arguments are names or vectors; the search on arrays cannot call the others."""
    named = {"leaf_value": has_vectors(leaf_value), "upper_bound": has_vectors(upper_bound)}
    return named | {"updater": updater is None}


class RTBSS(HoldsPolicy, AgentPlanner):
    """A planner that looks a fixed number of actions ahead, exactly, from the current belief.

    Args:
        depth: The number of actions to look ahead, at least 1.
        leaf_value: The value of a leaf belief. It determines whether the root value is a lower bound, an upper bound,
            or neither:

            - ``"zero"``; ``"immediate"``, the best immediate reward; `ImmediateValue` of one action. The root value is
              that of ``depth + 1`` actions (``"zero"``: ``depth``), and does not bound longer horizons.
            - ``"blind"``, the best blind policy; a solution of `pomdp_hier.planning.solve`; a `FiniteStateController`
              whose nodes are legal wherever they are reached. The root value is a lower bound, which rises with the
              depth. The planner's infinite-horizon value is at least this.
            - ``"qmdp"``, ``"fib"`` (see `value_bound`). The root value is an upper bound, which falls with the depth.
              It does not bound the planner's value.
            - A result of `value_iteration` for n actions. The root value is that of ``depth + n`` actions. A solution
              of horizon n, or a controller of n actions, gives at most that.
            - A callable ``(problem, belief) -> number``. It switches pruning off, except with ``convex=True`` or a
              custom upper bound.

            Infinite-horizon values need a discount below 1 or certain termination; else pass those of
            `value_iteration`.
        upper_bound: The bound that orders and prunes actions: ``"fib"``, ``"qmdp"``, ``"range"`` (see `value_bound`), a
            solution of `pomdp_hier.planning.solve`, or a callable ``(problem, belief, action, depth) -> number``. A
            solution prunes where leaf values are at most optimal: for the lower bounds above, and for leaf values of
            nonnegative rewards. A solution of a horizon of at least ``depth`` prunes for ``"zero"``.
        ties: ``"first"`` prunes an action below the root that can at best tie; ``"all"`` expands it as well. At the
            root all tied actions are found either way, and the first in the problem's order is taken.
        prune: ``False`` expands all actions.
        updater: The belief update with observation probabilities: a `pomdp_hier.beliefs.BeliefUpdater`, or an argument
            of `pomdp_hier.beliefs.as_updater`; by default Bayes' rule. The named bounds hold for Bayes' rule. Another
            updater switches pruning off unless the upper bound is a callable.
        budget: The largest number of nodes (beliefs) to expand. If it runs out, the decision is the best of the
            finished actions of the root; ``stats["complete"]`` is then ``False``, and the other actions have the
            status ``"bound"``.
        fallback: The policy that decides where the budget does not suffice for one action, with ``stats["fallback"]``
            True and without a value. Without it, an error is raised.
        engine: ``"plain"``, a recursion with the problem's number type; ``"arrays"``, float64 on the compiled problem,
            all beliefs of one depth together; ``"auto"``: arrays for a depth of at least 2, floats, and no callable.
            Arrays and named bounds enumerate all states. For too many of them, ``engine="plain"`` with ``prune=False``
            visits only what the look-ahead can reach.
        convex: Whether a callable ``leaf_value`` is convex in the belief: ``L(b) <= sum_s b(s) L(e_s)``, where ``e_s``
            is certain of ``s``. Pruning then stays on.
        tie_tolerance: Values this close to the best count as tied; 0 compares exactly.
        merge_tolerance: The tolerance within which two beliefs are equal and expanded once, if depth to go, support and
            legal actions agree too. 0 merges equal beliefs only, ``None`` merges none.
        problem: The problem that `plan` solves in pomdp-py's loop; by default that of the agent's models, with the
            agent's discount, or 1.

    Raises:
        ParameterError: An argument is out of range or of an unknown kind.

    Example:
        >>> coin = POMDP(
        ...     transition=lambda s, a: s,
        ...     observation=lambda s, a: ({s: 0.75, ("tails" if s == "heads" else "heads"): 0.25}
        ...                               if a == "look" else "nothing"),
        ...     reward=lambda s, a: 0 if a == "look" else (1 if s == a else -1),
        ...     initial_belief={"heads": 0.5, "tails": 0.5},
        ...     legal_actions=["heads", "tails", "look"],
        ... )
        >>> decision = RTBSS(depth=2).decide(coin)
        >>> decision.action, decision.value, decision.q_values["heads"]
        ('look', 0.5, 0.0)

    References:
        Paquet, Tobin and Chaib-draa (2005); Ross et al. (2008), Algorithm 3.2.
    """

    holds = "fallback"

    def __init__(
        self,
        depth: int,
        leaf_value: Any = "zero",
        upper_bound: str | Callable[[POMDP, Belief, Any, int], Number] = "fib",
        ties: Literal["first", "all"] = "first",
        prune: bool = True,
        updater: Any = None,
        budget: int | None = None,
        *,
        engine: Literal["auto", "plain", "arrays"] = "auto",
        tie_tolerance: float = 0.0,
        merge_tolerance: float | None = 0.0,
        convex: bool = False,
        fallback: Any = None,
        problem: POMDP | None = None,
    ) -> None:
        check_integer("depth", depth, 1, unit="actions to look ahead")
        if budget is not None and not (is_nonnegative(budget) and budget >= 1):
            raise unexpected("budget", budget, "a number of nodes, at least 1, or None")
        if fallback is not None and budget is None:
            raise ParameterError(
                f"fallback: got {brief(fallback)} without a budget; expected None. Pass budget, or leave out fallback."
            )
        check_choice("ties", ties, ("first", "all"))
        check_choice("engine", engine, ("auto", "plain", "arrays"))
        upper_bound = getattr(upper_bound, "action_bound", upper_bound)
        if not callable(upper_bound) and not is_one_of(upper_bound, *_BOUNDS):
            raise unexpected("upper_bound", upper_bound, "'fib', 'qmdp', 'range', a solution, or a callable")
        merging = 0.0 if merge_tolerance is None else merge_tolerance
        for name, tolerance in (("tie_tolerance", tie_tolerance), ("merge_tolerance", merging)):
            if not (is_nonnegative(tolerance) and tolerance < math.inf):
                raise unexpected(name, tolerance, "a finite number of at least 0")
        if merge_tolerance and merge_tolerance < _FINEST_MERGING:
            raise unexpected("merge_tolerance", merge_tolerance, f"0, or at least {_FINEST_MERGING}")
        leaf_value = getattr(leaf_value, "leaf", leaf_value)
        self.leaf = leaf_function(leaf_value)
        if engine == "arrays":
            self._check_arrays(leaf_value, upper_bound, updater)
        self.depth = int(depth)
        self.leaf_value = leaf_value
        self.upper_bound = upper_bound
        if callable(upper_bound):
            self._action_bound = bind("upper_bound", upper_bound, SIGNATURES["bound"]).call
        self.ties = ties
        check_flag("prune", prune)
        check_flag("convex", convex)
        self.convex = convex
        self.prune = prune
        self.updater = updater
        self.budget = budget
        self.fallback = None if fallback is None else as_policy(fallback)
        self.engine = engine
        self.tie_tolerance = tie_tolerance
        self.merge_tolerance = merge_tolerance
        self._prunings: weakref.WeakKeyDictionary[POMDP, dict[int, Pruning]] = weakref.WeakKeyDictionary()
        self._prepared: weakref.WeakKeyDictionary[POMDP, dict[int, ArraySearch]] = weakref.WeakKeyDictionary()
        self.problem = problem

    @staticmethod
    def _check_arrays(leaf_value: Any, upper_bound: Any, updater: Any) -> None:
        for name, named in _named(leaf_value, upper_bound, updater).items():
            if not named:
                raise ParameterError(
                    f"engine: got 'arrays' with {name}, which is called; expected 'plain' or 'auto'. Pass one of "
                    f"them, or leave out {name}."
                )

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the settings alone; tables of a problem are not pickled."""
        names = ("depth", "leaf_value", "upper_bound", "ties", "prune", "updater", "budget")
        named = ("engine", "tie_tolerance", "merge_tolerance", "convex", "fallback", "problem")
        build = partial(type(self), **{name: getattr(self, name) for name in named})
        return build, tuple(getattr(self, name) for name in names)

    def __repr__(self) -> str:
        return f"RTBSS(depth={self.depth}, leaf_value={self.leaf_value!r}, upper_bound={self.upper_bound!r})"

    # --- deciding ------------------------------------------------------------------------------------------------

    def decide(self, problem: POMDP, belief: Belief | None = None, *, observation: Hashable = None) -> Decision:
        """Return the decision under the belief (the initial one by default), after the observation.

        ``q_values`` has every legal action. ``stats["status"]`` names each as a value (``"exact"``), an upper bound
        that pruned the action (``"pruned"``), or an upper bound where the budget ran out (``"bound"``). The other
        counters: ``nodes`` expanded, actions ``pruned``, beliefs ``reused``.

        Raises:
            PlanningError: The belief is terminal, a bound is violated, or the budget is too small for one action and
                ``fallback`` is ``None``.
        """
        belief, actions = where_to_decide(problem, belief, observation)
        search, q_value, engine = self._search(problem, belief)
        search.nodes = 1
        pruning = self.pruning(problem)
        q_values: dict[Any, Number] = {}
        status: dict[Any, str] = {}
        best: Number | None = None
        for action, bound in pruning.ranked(belief, actions, self.depth):
            q_values[action], status[action] = bound, "pruned"
            if pruning.skips(bound, best, at_root=True):
                search.pruned += 1
                continue
            try:
                q_values[action] = q_value(action)
            except BudgetExhausted:
                status[action] = "bound"
                q_values[action] = float("inf") if bound is None else bound
                continue
            status[action] = "exact"
            pruning.check(q_values[action], bound, action, self.depth)
            best = q_values[action] if best is None else self._larger(best, q_values[action])
        stats: dict[str, Any] = {"engine": engine, "depth": self.depth, "nodes": search.nodes}
        if best is None and self.fallback is not None:
            action = decided(self.fallback, problem, belief, observation).action
            stats |= {"status": dict.fromkeys(actions, "bound"), "complete": False, "fallback": True}
            return Decision(action, q_values={a: q_values[a] for a in actions}, stats=stats)
        if best is None:
            raise PlanningError(
                f"budget: got {brief(self.budget)}; expected enough nodes for one of {len(actions)} actions to depth "
                f"{self.depth}. Raise budget, lower depth, or name a fallback."
            )
        best, ties = best_and_tied({a: q_values[a] for a in actions if status[a] == "exact"}, self.tie_tolerance)
        stats |= {
            "pruned": search.pruned,
            "reused": search.reused,
            "status": {action: status[action] for action in actions},
            "complete": "bound" not in status.values(),
            "pruning": pruning.upper is not None,
            "merge_tolerance": self.merge_tolerance,
        }
        return Decision(ties[0], value=best, q_values={a: q_values[a] for a in actions}, ties=ties, stats=stats)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name == "action_probabilities" and hasattr(self.__dict__.get("fallback"), name):
                return self._probabilities
            return super().__getattr__(name)

    def _probabilities(self, problem: POMDP, belief: Belief, *, observation: Hashable = None) -> Mapping[Any, Number]:
        """Return ``{action: probability}``, where the fallback samples its action."""
        decision = self.decide(problem, belief, observation=observation)
        if self.fallback is not None and "fallback" in decision.stats:
            return action_probabilities(self.fallback, problem, belief, observation)[0]
        return {decision.action: 1}

    @staticmethod
    def _larger(best: Number, value: Number) -> Number:
        try:
            return value if value > best else best
        except TypeError as error:
            raise PlanningError(
                f"problem: got the values {brief(best)} and {brief(value)}; expected values that can be compared. "
                "Substitute numbers for the symbols, or build an AndOrTree, which keeps both."
            ) from error

    def _search(self, problem: POMDP, belief: Belief) -> tuple[PlainSearch | ArraySearch, Callable[[Any], Number], str]:
        """Return the search, the function that gives an action's value at the root, and the engine's name."""
        if self._on_arrays(problem, belief):
            search = self._array_search(problem)
            vector, index = problem.compiled.vector(belief), problem.compiled.action_index
            return search, lambda action: search.q_value(vector, index[action], self.depth), "arrays"
        if self.depth > _DEEPEST_RECURSION:
            raise PlanningError(
                f"depth: got {self.depth}; expected at most {_DEEPEST_RECURSION}, as each level of this search is a "
                f"recursion. Lower depth{self._way_to_arrays(problem)}."
            )
        plain = PlainSearch(
            problem,
            as_updater(self.updater, problem),
            self.leaf,
            self.pruning(problem),
            merge_tolerance=self.merge_tolerance,
            budget=self.budget,
        )
        return plain, lambda action: plain.q_value(belief, action, self.depth), "plain"

    def _array_search(self, problem: POMDP) -> ArraySearch:
        """Return a search with its counters at 0; its tables are computed once per problem."""
        prepared = self._prepared.setdefault(problem, {})
        if self.depth not in prepared:
            prepared[self.depth] = self._prepare(problem)
        return copy.copy(prepared[self.depth])

    def _prepare(self, problem: POMDP) -> ArraySearch:
        vectors = leaf_vectors(problem, self.leaf_value, convex=self.convex)
        assert vectors is not None  # of callables, which `__init__` does not let through to arrays
        pruning = self.pruning(problem)
        lower = None if pruning.table is None else bound_tables(problem.compiled, "blind", self.depth, vectors)
        return ArraySearch(
            problem.compiled, vectors, pruning, lower, merge_tolerance=self.merge_tolerance, budget=self.budget
        )

    def _on_arrays(self, problem: POMDP, belief: Belief) -> bool:
        if self.engine != "auto":
            return self.engine == "arrays"
        named = all(_named(self.leaf_value, self.upper_bound, self.updater).values())
        if not named or problem.legal_by == "belief" or problem.has_belief_reward or self.depth == 1:
            return False
        return not has_exact_numbers(problem, belief)

    def _way_to_arrays(self, problem: POMDP) -> str:
        """Return the advice to use arrays, where that is possible."""
        if problem.legal_by == "belief" or problem.has_belief_reward or has_symbols(problem):
            return ""
        called = [name for name, named in _named(self.leaf_value, self.upper_bound, self.updater).items() if not named]
        leave = f"leave out {' and '.join(called)} and " if called else ""
        return f", or {leave}pass engine='arrays', which computes in floats"

    # --- pruning -------------------------------------------------------------------------------------------------

    def pruning(self, problem: POMDP) -> Pruning:
        """Return the order in which actions are searched, and their upper bounds, computed once per problem."""
        if not self.prune or self.depth == 1:  # for one step a bound costs as much as the value
            return Pruning()
        keep_ties = self.ties == "all"
        by_bayes = self.updater is None or isinstance(self.updater, (BayesUpdater, TabularUpdater))
        if callable(self.upper_bound):
            solution = getattr(self.upper_bound, "__self__", None)
            below = by_bayes and not problem.has_belief_reward
            if isinstance(solution, Solution) and not (below and self._is_below(solution, problem)):
                return Pruning()
            bound = self._action_bound
            check_slack = math.inf if self.merge_tolerance else 0.0
            return Pruning(
                lambda belief, action, depth: bound(problem, belief, action, depth),
                keep_ties=keep_ties,
                tie_tolerance=self.tie_tolerance,
                check_slack=check_slack,
            )
        convex = has_vectors(self.leaf_value) or self.convex
        linear = problem.legal_by != "belief" and not problem.has_belief_reward
        if not (by_bayes and convex and linear):  # the named bounds hold for these alone
            return Pruning()
        prunings = self._prunings.setdefault(problem, {})
        if self.depth not in prunings:
            prunings[self.depth] = Pruning()
            if not has_symbols(problem):
                vectors = leaf_vectors(problem, self.leaf_value, convex=self.convex)
                prunings[self.depth] = Pruning.by_table(
                    problem,
                    bound_tables(problem.compiled, str(self.upper_bound), self.depth, vectors),
                    merge_tolerance=self.merge_tolerance or 0.0,
                    keep_ties=keep_ties,
                    tie_tolerance=self.tie_tolerance,
                )
        return prunings[self.depth]

    def _is_below(self, solution: Solution, problem: POMDP) -> bool:
        """Return whether a solution bounds the search: leaf values are at most optimal for the remaining horizon."""
        leaf = self.leaf_value
        if solution.horizon is not None:
            return isinstance(leaf, str) and leaf == "zero" and self.depth <= solution.horizon
        if isinstance(leaf, LeafVectors):
            return leaf.below_optimum
        named = isinstance(leaf, (str, ImmediateValue)) and leaf not in ("blind", "fib", "qmdp")
        return leaf == "blind" or (named and reward_range(problem.compiled)[0] >= 0)  # later rewards are no loss
