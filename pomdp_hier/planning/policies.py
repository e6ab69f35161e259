"""Policies for any problem: first action, random, threshold, QMDP, FIB, plain functions, finite-horizon optimal.

A policy has one method, `Policy.decide`. Optional methods are used by simulations and exact evaluations:

- ``action_probabilities(problem, belief, observation=None)`` of a policy that samples its action: the probability of
  each action;
- ``at_step(step)`` of a policy that depends on time: the policy at that step, from 0;
- ``seeded(seed)`` of a policy that samples: the same policy with other random numbers;
- ``with_memory(memory)`` of a policy with memory: the policy at that memory, ``None`` at the start; and
  ``remember(memory, observation)``: the memory after its action and the observation.
"""

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pomdp_hier._arguments import Floats, Ints, as_floats, as_integers, generator
from pomdp_hier._text import brief, listed, visible
from pomdp_hier.errors import ModelError, ParameterError, PlanningError
from pomdp_hier.planning.bounds import infinite_horizon_table, mdp_values
from pomdp_hier.planning.decision import Decision, Policy, best_and_tied, where_to_decide
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.numeric import Number, total
from pomdp_hier.pomdp.problem import POMDP
from pomdp_hier.pomdp.signatures import SIGNATURES, bind
from pomdp_hier.pomdp.tabular import TabularPOMDP

Seed = int | np.random.SeedSequence | None

_DECIDE = "decide(problem, belief=None, *, observation=None)"
_RULE = (
    "a stopping rule of a hierarchy is an object with the method descend(eta, sizes, rewards, level), which "
    "pomdp_hier.evaluate takes as its policy"
)


def action_probabilities(
    policy: Policy, problem: POMDP, belief: Belief, observation: Hashable = None
) -> tuple[Mapping[Any, Number], Decision | None]:
    """Return ``{action: probability}`` of a policy at a belief, and its `Decision` if it does not sample.

    Example:
        >>> stay = POMDP(transition=lambda s, a: s, observation=lambda s, a: "same", reward=lambda s, a: 1,
        ...              initial_belief={"here": 1}, legal_actions=["wait", "look"])
        >>> action_probabilities(RandomPolicy(0), stay, stay.initial_belief)[0]
        {'wait': 0.5, 'look': 0.5}
    """
    spread = getattr(policy, "action_probabilities", None)
    if spread is not None:
        probabilities = spread(problem, belief, observation=observation)
        legal = problem.actions(belief, observation)
        for action in probabilities:
            _require_legal(action, legal, repr(policy))
        return probabilities, None
    return {(decision := decided(policy, problem, belief, observation)).action: 1}, decision


def decided(policy: Policy, problem: POMDP, belief: Belief, observation: Hashable = None) -> Decision:
    """Return the decision of the policy, checked to be legal at the belief.

    Raises:
        PlanningError: The action is not legal, or the result is not a `Decision`.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> decided(FirstAction(), tiger(), tiger().initial_belief).action
        'listen'
    """
    decision = policy.decide(problem, belief, observation=observation)
    if not isinstance(decision, Decision):
        raise PlanningError(f"policy: got {brief(decision)} from {brief(policy)}; expected a Decision(action).")
    _require_legal(decision.action, problem.actions(belief, observation), repr(policy))
    return decision


def _require_legal(action: Any, legal: tuple[Any, ...], name: str) -> None:
    if action not in legal:
        raise PlanningError(
            f"policy: got {brief(action)} from {visible(name)}; expected a legal action: {listed(legal, limit=8)}."
        )


class HoldsPolicy:
    """Base class of policies that contain a policy; ``at_step`` and ``seeded`` are passed to it, if it has them.

    Attributes:
        holds: The name of the attribute of the contained policy.

    Example:
        >>> class Same(HoldsPolicy):
        ...     holds = "inner"
        ...     def __init__(self, inner):
        ...         self.inner = inner
        >>> hasattr(Same(RandomPolicy(0)), "seeded"), hasattr(Same(FirstAction()), "seeded")
        (True, False)
    """

    holds: ClassVar[str]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in ("at_step", "seeded") and hasattr(self.__dict__.get(self.holds), name):
                return partial(self._passed_on, name)
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)

    def _passed_on(self, name: str, argument: Any) -> Any:
        """Return this policy with the contained one at a step, or with other random numbers."""
        other = type(self).__new__(type(self))
        held = getattr(self.__dict__[self.holds], name)(argument)
        other.__dict__.update({**self.__dict__, self.holds: held})
        return other


class FirstAction:
    """Policy of the first legal action, in the problem's order.

    Example:
        >>> stay = POMDP(transition=lambda s, a: s, observation=lambda s, a: "same", reward=lambda s, a: 1,
        ...              initial_belief={"here": 1}, legal_actions=["wait", "look"])
        >>> FirstAction().decide(stay).action
        'wait'
    """

    def decide(self, problem: POMDP, belief: Belief | None = None, *, observation: Hashable = None) -> Decision:
        """Return the decision at the belief."""
        return Decision(where_to_decide(problem, belief, observation)[1][0])

    def __repr__(self) -> str:
        return "FirstAction()"


class RandomPolicy:
    """Policy of a uniformly random legal action.

    Args:
        seed: The seed; ``None`` for one of the operating system.

    Example:
        >>> stay = POMDP(transition=lambda s, a: s, observation=lambda s, a: "same", reward=lambda s, a: 1,
        ...              initial_belief={"here": 1}, legal_actions=["wait", "look"])
        >>> policy = RandomPolicy(seed=1)
        >>> [policy.decide(stay).action for _ in range(4)]
        ['wait', 'look', 'look', 'look']
    """

    def __init__(self, seed: Seed = None) -> None:
        self._rng = generator("seed", seed)

    def decide(self, problem: POMDP, belief: Belief | None = None, *, observation: Hashable = None) -> Decision:
        """Return the decision at the belief; each call samples again."""
        belief, actions = where_to_decide(problem, belief, observation)
        return Decision(actions[int(self._rng.integers(len(actions)))])

    def action_probabilities(
        self, problem: POMDP, belief: Belief, *, observation: Hashable = None
    ) -> dict[Any, Number]:
        """Return ``{action: 1 / n}`` over the n legal actions."""
        _, actions = where_to_decide(problem, belief, observation)
        return dict.fromkeys(actions, 1 / len(actions))

    def seeded(self, seed: Seed) -> "RandomPolicy":
        """Return the same policy with other random numbers."""
        return RandomPolicy(seed)

    def __repr__(self) -> str:
        return "RandomPolicy()"


class ThresholdPolicy:
    """Policy of the first rule whose event has at least a threshold probability, else of a default action.

    ``a = a_i`` for the first ``i`` with ``b(E_i) >= p_i``, else ``otherwise``. A rule whose action is not legal is
    skipped.

    Args:
        rules: Triples of event, threshold in [0, 1] and action. An event is a state, a set of states, or a function
            of a state that returns a truth value.
        otherwise: The action if no rule applies.

    Raises:
        ParameterError: A threshold is outside [0, 1].

    Example:
        >>> coin = POMDP(transition=lambda s, a: s, observation=lambda s, a: s, reward=lambda s, a: s == a,
        ...              initial_belief={"heads": 0.8, "tails": 0.2}, legal_actions=["look", "heads", "tails"])
        >>> careful = ThresholdPolicy([("heads", 0.9, "heads"), ("tails", 0.9, "tails")], otherwise="look")
        >>> careful.decide(coin).action, careful.decide(coin, Belief({"heads": 0.95, "tails": 0.05})).action
        ('look', 'heads')
    """

    def __init__(self, rules: Sequence[tuple[Any, Number, Any]], otherwise: Any) -> None:
        untyped: Any = rules
        if any(isinstance(rule, str) or len(rule) != 3 for rule in untyped):
            raise ParameterError(f"rules: got {brief(rules)}; expected triples [(event, threshold, action), ...].")
        for event, threshold, action in rules:
            if not 0 <= threshold <= 1:
                raise ParameterError(
                    f"rules: got threshold {threshold} of {brief(event)} for {brief(action)}; expected one in [0, 1]."
                )
            if callable(event):
                bind("rules", event, SIGNATURES["event"])
        self.rules = tuple(rules)
        self.otherwise = otherwise

    def decide(self, problem: POMDP, belief: Belief | None = None, *, observation: Hashable = None) -> Decision:
        """Return the decision at the belief.

        Raises:
            PlanningError: No rule applies, and ``otherwise`` is not legal.
        """
        belief, legal = where_to_decide(problem, belief, observation)
        for event, threshold, action in self.rules:
            if action in legal and _probability(belief, event) >= threshold:
                return Decision(action)
        if self.otherwise not in legal:
            raise PlanningError(
                f"otherwise: got {brief(self.otherwise)}; expected a legal action: {listed(legal, limit=8)}. Add a "
                "rule with threshold 0 for one of them."
            )
        return Decision(self.otherwise)

    def __repr__(self) -> str:
        return f"ThresholdPolicy({len(self.rules)} rules)"


def _probability(belief: Belief, event: Any) -> Number:
    if isinstance(event, AbstractSet):
        return total(belief[state] for state in event)
    if callable(event):
        return total(probability for state, probability in belief.items() if event(state))
    return belief[event]


class QMDPPolicy:
    """Greedy policy of QMDP: the best action if the state were fully observable from the next step on.

    ``a = argmax_a sum_s b(s) Q_MDP(s, a)``: good where information comes for free, but without a value of information.

    Args:
        horizon: The number of actions to look ahead; ``None`` for an infinite horizon.
        tolerance: The greatest change of a value at convergence, relative to the greatest value.

    Example:
        >>> coin = POMDP(transition=lambda s, a: s, observation=lambda s, a: s, reward=lambda s, a: float(s == a),
        ...              initial_belief={"heads": 0.8, "tails": 0.2}, legal_actions=["tails", "heads"])
        >>> QMDPPolicy(horizon=1).decide(coin).action
        'heads'

    References:
        Littman, Cassandra and Kaelbling (1995).
    """

    def __init__(self, *, horizon: int | None = None, tolerance: float = 1e-12) -> None:
        self.horizon = horizon
        self.tolerance = tolerance
        self._solved: tuple[POMDP, Floats, int] | None = None

    def decide(self, problem: POMDP, belief: Belief | None = None, *, observation: Hashable = None) -> Decision:
        """Return the decision at the belief, with the Q value of every legal action.

        Raises:
            ModelError: The problem cannot be compiled.
            PlanningError: The values do not converge.
        """
        belief, actions = where_to_decide(problem, belief, observation)
        compiled = problem.compiled
        if self._solved is None or self._solved[0] is not problem:
            self._solved = (problem, *self._solve(compiled))
        _, q, backups = self._solved
        vector = compiled.vector(belief)
        support = np.flatnonzero(vector)
        q_values = {a: float(vector[support] @ q[compiled.action_index[a], support]) for a in actions}
        best, ties = best_and_tied(q_values)
        return Decision(ties[0], value=best, q_values=q_values, ties=ties, stats={"backups": backups})

    def _solve(self, compiled: TabularPOMDP) -> tuple[Floats, int]:
        """Return the Q values ``[A, S]``, and the number of backups."""
        return mdp_values(compiled, horizon=self.horizon, tolerance=self.tolerance)

    def __getstate__(self) -> dict[str, Any]:
        """Return the settings without the Q values."""
        return {**self.__dict__, "_solved": None}

    def __repr__(self) -> str:
        return f"QMDPPolicy(horizon={self.horizon})"


class FIBPolicy(QMDPPolicy):
    """Greedy policy of the fast informed bound (FIB).

    ``a = argmax_a sum_s b(s) Q_FIB(s, a)``, with the table ``value_bound(problem, "fib")``.
    Unlike `QMDPPolicy`, it values observations; like it, it assumes more
    information than the agent has. For discounted, infinite-horizon problems.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> decision = FIBPolicy().decide(tiger())
        >>> decision.action, round(decision.value, 3)
        ('listen', 87.179)

    References:
        Hauskrecht (2000), section 4.3.
    """

    def __init__(self) -> None:
        super().__init__()

    def _solve(self, compiled: TabularPOMDP) -> tuple[Floats, int]:
        return infinite_horizon_table(compiled, "fib").at_start, 0

    def __repr__(self) -> str:
        return "FIBPolicy()"


@dataclass(frozen=True, eq=False)
class AlphaVectorPolicy:
    """A policy of alpha vectors, over the states and actions of a problem in its order.

    Attributes:
        vectors: ``[K, S]``; -inf where a vector has no value for the state.
        actions: ``[K]``, the index of each vector's action.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> policy = AlphaVectorPolicy(np.array([[-1.0, -1.0], [-100.0, 10.0]]), np.array([0, 1]))
        >>> policy.decide(tiger()).action, policy.decide(tiger(), {"tiger-right": 1}).action
        ('listen', 'open-left')
    """

    vectors: Floats = field(repr=False)
    actions: Ints = field(repr=False)

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "vectors", as_floats(self.vectors))
            object.__setattr__(self, "actions", as_integers(self.actions))
        except (TypeError, ValueError, OverflowError) as error:
            raise ModelError(
                f"vectors: got {brief(self.vectors)} and actions {brief(self.actions)}; expected numbers [K, S], and "
                "the index of each vector's action."
            ) from error
        if self.vectors.ndim != 2 or self.actions.shape != (len(self.vectors),) or not len(self.vectors):
            raise ModelError(
                f"vectors: got shape {self.vectors.shape} with {len(self.actions)} actions; expected [K, S] with K "
                "actions."
            )

    def __repr__(self) -> str:
        return f"AlphaVectorPolicy({len(self.vectors)} vectors, {self.vectors.shape[1]} states)"

    def value(self, problem: POMDP, belief: Any = None) -> float:
        """Return ``max_k sum_s b(s) alpha_k(s)`` over the vectors that are legal at the belief."""
        return float(self.decide(problem, belief).value)  # type: ignore[arg-type]  # always a number

    def decide(self, problem: POMDP, belief: Belief | None = None, *, observation: Hashable = None) -> Decision:
        """Return the action of the best vector whose action is legal, and its value.

        Raises:
            ModelError: The vectors are for a problem of another size, or none is legal.
        """
        belief, legal = where_to_decide(problem, belief, observation)
        compiled = problem.compiled
        if self.vectors.shape[1] != compiled.n_states or int(self.actions.max()) >= compiled.n_actions:
            raise ModelError(
                f"vectors: got {self.vectors.shape[1]} states and actions up to {int(self.actions.max())}; expected "
                f"the problem's {compiled.n_states} states and {compiled.n_actions} actions."
            )
        weights = compiled.vector(belief)
        support = np.flatnonzero((weights > 0) & ~compiled.terminal)
        allowed = np.isin(self.actions, [compiled.action_index[a] for a in legal])
        scores = np.where(allowed, self.vectors[:, support] @ weights[support], -np.inf)
        best = int(np.argmax(scores))
        if not np.isfinite(scores[best]):
            raise ModelError(f"vectors: got {len(scores)}; expected at least one whose action is legal at this belief.")
        return Decision(compiled.actions[self.actions[best]], value=float(scores[best]))


class FunctionPolicy:
    """A function as a policy.

    Args:
        function: A function of ``(belief)``, ``(problem, belief)`` or ``(problem, belief, observation)``, by these
            names in any order, that returns an action or a `Decision`.
        name: The name in tables; the function's own name by default.

    Example:
        >>> stay = POMDP(transition=lambda s, a: s, observation=lambda s, a: "same", reward=lambda s, a: 1,
        ...              initial_belief={"here": 1}, legal_actions=["wait", "look"])
        >>> FunctionPolicy(lambda belief: "look").decide(stay).action
        'look'
    """

    def __init__(self, function: Callable[..., Any], name: str | None = None) -> None:
        self.function = function
        self.name = name or getattr(function, "__name__", type(function).__name__)
        try:
            self._bound = bind("policy", function)
        except ParameterError as error:
            is_rule = len(inspect.signature(function).parameters) == 4
            raise ParameterError(f"{error} Note: {_RULE}." if is_rule else str(error)) from None

    def decide(self, problem: POMDP, belief: Belief | None = None, *, observation: Hashable = None) -> Decision:
        """Return the decision under the belief.

        Raises:
            PlanningError: The function returns an action that is not legal.
        """
        belief, legal = where_to_decide(problem, belief, observation)
        outcome = self._bound.call(*(problem, belief, observation)[: self._bound.count])
        decision = outcome if isinstance(outcome, Decision) else Decision(outcome)
        _require_legal(decision.action, legal, str(self.name))
        return decision

    def __repr__(self) -> str:
        return f"FunctionPolicy({self.name})"


def as_policy(policy: Any) -> Policy:
    """Return a policy as it is, and a function wrapped as a policy.

    Raises:
        ParameterError: It is neither, or its ``decide`` has other arguments than `Policy.decide`.

    Example:
        >>> as_policy(FirstAction()), as_policy(lambda belief: "wait")
        (FirstAction(), FunctionPolicy(<lambda>))
    """
    if isinstance(policy, type):
        raise ParameterError(
            f"policy: got the class {policy.__name__}; expected an instance. Pass {policy.__name__}(...)."
        )
    if isinstance(policy, Policy):
        _require_arguments(policy)
        return policy
    if callable(policy):
        return FunctionPolicy(policy)
    hint = " Pass the policy before the problem." if isinstance(policy, POMDP) else ""
    if hasattr(policy, "descend"):
        hint = f" Note: {_RULE}."
    raise ParameterError(f"policy: got {brief(policy)}; expected a function or an object with {_DECIDE}.{hint}")


def _require_arguments(policy: Policy) -> None:
    """Raise unless ``decide`` can be called as every evaluator calls it."""
    try:
        signature = inspect.signature(policy.decide)
    except (TypeError, ValueError):  # a compiled method has no signature
        return
    try:
        signature.bind(None, None, observation=None)
    except TypeError as error:
        raise ParameterError(
            f"policy: got {brief(policy)} with decide{signature}; expected {_DECIDE}. Accept observation, the last one."
        ) from error
    if bind("policy", policy.decide).roles[:2] != ("problem", "belief"):
        raise ParameterError(f"policy: got {brief(policy)} with decide{signature}; expected {_DECIDE}. Use this order.")
