"""POUCT and POMCP: pomdp-py's Monte Carlo tree searches as planners for any `POMDP`.

Runs are sampled from a belief and end in terminal states. Legal actions depend on the history alone. Python's global
random state is restored, and one seed gives one tree. Values are means of the sampled returns in double precision;
pomdp-py keeps its own in 32-bit floats.
"""

import math
from bisect import bisect
from collections.abc import Hashable, Mapping
from functools import lru_cache
from itertools import accumulate
from random import choice, random
from typing import Any, ClassVar

import pomdp_py

from pomdp_hier._arguments import Ints, check_choice, check_integer, generator
from pomdp_hier._text import brief
from pomdp_hier.errors import ParameterError, PlanningError
from pomdp_hier.planning.bounds import mdp_values
from pomdp_hier.planning.decision import Decision, best_and_tied, where_to_decide
from pomdp_hier.planning.policies import Seed
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.numeric import Number, is_nonnegative, is_symbolic
from pomdp_hier.pomdp.pomdp_py_bridge import HistoryPolicy
from pomdp_hier.pomdp.problem import POMDP
from pomdp_hier.pomdp.spaces import (
    TERMINAL_OBSERVATION,
    BridgedObservation,
    BridgedState,
    bridged_action,
    seeded_random,
    unwrapped,
)
from pomdp_hier.pomdp.tabular import TabularPOMDP

_MDP_HORIZON = 1_000  # of rollouts without a discount


class POUCT:
    """Partially observable UCT: sampled runs in a search tree, with actions chosen by an upper confidence bound.

    At a node, a run takes the action of the greatest ``q + c sqrt(ln(N + 1) / n)``; below the tree, actions are random.
    With the number of runs, the values converge to the optimal values of ``depth`` actions. Until then they are means
    over exploration and random actions, and far lower. They rank actions, but are not values of the policy.

    How much planning a comparison needs, measured at depth 10 over 8 seeds (benchmarks, pouct). 200 runs find an
    optimal action at the start of tiger, crying_baby and corridor. In tiger, 5,000 runs still listen once more than is
    optimal at a belief of .97, for a loss of .7 of 25. At the start of cheese_maze the optimum of ten actions is .04 of
    3.5 below that of an infinite horizon. In rock_sample(4, 3), 5,000 runs lose .40 of 19.2 per decision with random
    rollouts, and .02 with ``rollout="mdp"``, which loses least on most problems. Prefer `RTBSS` or `solve` where they
    are within reach.

    Args:
        depth: The number of actions to look ahead, at least 1.
        simulations: The number of runs per decision.
        exploration: The constant ``c``, in the problem's reward unit. By default it is the range of the immediate
            rewards at the belief (or 1 if it is 0), times ``sqrt(1 + gamma^2 + … + gamma^(2 depth - 2))``. This is
            Hoeffding's scale for the return of ``depth`` rewards of that range.
        rollout: The actions below the tree: ``"random"``, or ``"mdp"`` for those of the optimal policy of a fully
            observable state.
        seed: The seed; each decision samples again. ``None`` for one of the operating system.

    Attributes:
        tree: The root of the last search, an object of pomdp-py.

    Raises:
        ParameterError: An argument is out of range.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> decision = POUCT(depth=3, simulations=2_000, seed=1).decide(tiger())
        >>> decision.action, sum(decision.stats["visits"].values())
        ('listen', 1999)

    References:
        Silver and Veness (2010), section 3.1.
    """

    _kind: ClassVar[type] = pomdp_py.POUCT

    def __init__(
        self,
        depth: int = 5,
        simulations: int = 1_000,
        *,
        exploration: float | None = None,
        rollout: str = "random",
        seed: Seed = None,
    ) -> None:
        check_choice("rollout", rollout, ("random", "mdp"))
        check_integer("depth", depth, 1, unit="actions to look ahead")
        check_integer("simulations", simulations, 2, unit="runs (the first only opens the tree)")
        if exploration is not None and not (is_nonnegative(exploration) and exploration < float("inf")):
            raise ParameterError(
                f"exploration: got {brief(exploration)}; expected a finite number of at least 0, or None."
            )
        self.depth = depth
        self.simulations = simulations
        self.exploration = exploration
        self.rollout = rollout
        self.tree: pomdp_py.VNode | None = None
        self._rng = generator("seed", seed)

    def seeded(self, seed: Seed) -> "POUCT":
        """Return the same planner with other random numbers."""
        return type(self)(self.depth, self.simulations, seed=seed, **self._settings())

    def _settings(self) -> dict[str, Any]:
        return {"exploration": self.exploration, "rollout": self.rollout}

    def decide(self, problem: POMDP, belief: Belief | None = None, *, observation: Hashable = None) -> Decision:
        """Return the decision at the belief (the initial one by default), after the observation.

        ``q_values`` are the mean returns by first action. ``stats`` has ``simulations``, ``visits`` by action, and
        ``exploration``.

        Raises:
            PlanningError: The belief is terminal, or there are fewer runs than actions to try.
        """
        belief, actions = where_to_decide(problem, belief, observation)
        if self.simulations <= len(actions):
            raise PlanningError(
                f"simulations: got {self.simulations} for {len(actions)} legal actions; expected at least "
                f"{len(actions) + 1}, one to open the tree and one per action."
            )
        exploration = self._exploration(problem, belief, actions)
        kind = HistoryPolicy if self.rollout == "random" else _GreedyRollout
        policy = kind(problem, belief, observation=observation)
        search = self._kind(
            max_depth=self.depth,
            num_sims=self.simulations,
            discount_factor=_float(problem.discount),
            exploration_const=exploration,
            rollout_policy=policy,
        )
        with seeded_random(int(self._rng.integers(2**63))):
            agent = _SearchAgent(_Simulator(problem, self.depth), self._start(belief), policy)
            search.plan(agent)
        self.tree = agent.tree
        returns = agent.simulator.finish()
        values = {action: returns[action][0] for action in actions}
        best, ties = best_and_tied(values)
        visits = {action: returns[action][1] for action in actions}
        stats = {"simulations": self.simulations, "visits": visits, "exploration": exploration, "depth": self.depth}
        return Decision(ties[0], value=best, q_values=values, ties=ties, stats=stats)

    def _exploration(self, problem: POMDP, belief: Belief, actions: tuple[Any, ...]) -> float:
        if self.exploration is not None:
            return float(self.exploration)
        alive = [s for s in belief if not problem.is_terminal(s)]
        rewards = [_float(problem.expected_reward(s, a)) for s in alive for a in actions]
        discount, most = _float(problem.discount) ** 2, max(rewards) - min(rewards) or 1.0
        steps = self.depth if discount == 1 else (1 - discount**self.depth) / (1 - discount)
        return most * math.sqrt(steps)

    def _start(self, belief: Belief) -> Any:
        """Return the distribution of initial states."""
        return _Sampler(belief)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(depth={self.depth}, simulations={self.simulations})"


class POMCP(POUCT):
    """POUCT from particles: pomdp-py's POMCP, with the belief replaced by a sample of states.

    Args:
        depth: The number of actions to look ahead, at least 1.
        simulations: The number of runs per decision.
        exploration, rollout: As in `POUCT`.
        seed: As in `POUCT`.
        particles: The number of states to sample from the belief.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> POMCP(depth=3, simulations=2_000, seed=1).decide(tiger()).action
        'listen'

    References:
        Silver and Veness (2010), section 3.2.
    """

    _kind: ClassVar[type] = pomdp_py.POMCP

    def __init__(
        self,
        depth: int = 5,
        simulations: int = 1_000,
        *,
        exploration: float | None = None,
        rollout: str = "random",
        seed: Seed = None,
        particles: int = 1_000,
    ) -> None:
        super().__init__(depth, simulations, exploration=exploration, rollout=rollout, seed=seed)
        check_integer("particles", particles, 1, unit="states to draw from the belief")
        self.particles = particles

    def seeded(self, seed: Seed) -> "POMCP":
        """Return the same planner with other random numbers."""
        return POMCP(self.depth, self.simulations, seed=seed, particles=self.particles, **self._settings())

    def _start(self, belief: Belief) -> Any:
        sampler = _Sampler(belief)
        return pomdp_py.Particles([sampler.random() for _ in range(self.particles)])


class _GreedyRollout(HistoryPolicy):
    """Rollouts by the optimal policy of the underlying MDP; random where its action is not legal."""

    def rollout(self, state: Any, history: tuple[Any, ...]) -> Any:
        """Return the optimal action of the fully observable state."""
        s, legal = unwrapped(state), self._legal_in(state, history)
        if self._problem.is_terminal(s):
            return choice(legal)
        compiled = self._problem.compiled
        best = bridged_action(compiled.actions[int(_greedy(compiled)[compiled.state_index[s]])])
        return best if best in legal else choice(legal)


@lru_cache(maxsize=16)
def _greedy(compiled: TabularPOMDP) -> Ints:
    """Return ``[S]``, the optimal action of each state of the underlying MDP."""
    horizon = None if compiled.discount < 1 else _MDP_HORIZON
    best: Ints = mdp_values(compiled, horizon=horizon)[0].argmax(axis=0)
    return best


class _Sampler(pomdp_py.GenerativeDistribution):
    """A distribution over bridged values, sampled with Python's global ``random``."""

    def __init__(self, distribution: Mapping[Any, Number] | Belief, bridged: Any = BridgedState) -> None:
        pairs = [(value, _float(p)) for value, p in distribution.items() if p != 0]
        self._values = [bridged(value) for value, _ in pairs]
        self._cumulative = list(accumulate(p for _, p in pairs))

    def random(self) -> Any:
        """Return a value."""
        last = len(self._values) - 1
        return self._values[bisect(self._cumulative, random() * self._cumulative[-1], 0, last)]


class _SearchAgent(pomdp_py.Agent):
    """The agent of pomdp-py's search; it signals the start of each run to its simulator."""

    def __init__(self, simulator: "_Simulator", belief: Any, policy: HistoryPolicy) -> None:
        super().__init__(belief, policy, blackbox_model=simulator)
        self.simulator = simulator

    def sample_belief(self) -> Any:
        self.simulator.begin()
        return super().sample_belief()


class _Simulator(pomdp_py.BlackboxModel):
    """A generative model of the problem that keeps the returns of the runs by their first action.

    Rewards and observations may depend on the whole step. A step into a terminal state counts as more steps than a run
    may have, so that pomdp-py ends the run there. pomdp-py ends rollouts after ``depth`` actions but lets a run inside
    the tree take one more. Its reward is 0 here, so that all runs have the same length.
    """

    def __init__(self, problem: POMDP, depth: int) -> None:
        self._problem = problem
        self._depth = depth
        self._discount = _float(problem.discount)
        self._next: dict[tuple[Any, Any], _Sampler] = {}
        self._seen: dict[tuple[Any, Any, Any], _Sampler] = {}
        self._returns: dict[Any, tuple[float, int]] = {}
        self._runs = self._steps = 0
        self._first: Any = None
        self._return, self._weight = 0.0, 1.0

    def begin(self) -> None:
        """Begin a run; the first only opens the tree, so that its return is not counted."""
        if self._runs > 1:
            mean, visits = self._returns.get(self._first, (0.0, 0))
            self._returns[self._first] = (mean + (self._return - mean) / (visits + 1), visits + 1)
        self._runs += 1
        self._steps = 0
        self._return, self._weight = 0.0, 1.0

    def finish(self) -> dict[Any, tuple[float, int]]:
        """Return the mean return, and the number of runs, by first action."""
        self.begin()
        return self._returns

    def sample(self, state: BridgedState, action: pomdp_py.Action) -> tuple[Any, Any, float, int]:
        """Return ``(s', o, r, n)``, where n counts the step: 1 before a terminal state."""
        s, a = state.value, unwrapped(action)
        if self._steps == 0:
            self._first = a
        self._steps += 1
        if self._problem.is_terminal(s):
            return state, TERMINAL_OBSERVATION, 0.0, self._depth + 1
        next_state = self._successor(s, a)
        observation = self._observation(s, a, next_state.value)
        reward = 0.0
        if self._steps <= self._depth:
            reward = _float(self._problem.step_reward(s, a, next_state.value, observation.value))
        self._return += self._weight * reward
        self._weight *= self._discount
        return next_state, observation, reward, self._depth + 1 if self._problem.is_terminal(next_state.value) else 1

    def _successor(self, s: Any, a: Any) -> Any:
        if (s, a) not in self._next:
            self._next[s, a] = _Sampler(self._problem.successors(s, a))
        return self._next[s, a].random()

    def _observation(self, s: Any, a: Any, t: Any) -> Any:
        key = (s if self._problem.observation.uses_state else None, a, t)
        if key not in self._seen:
            self._seen[key] = _Sampler(self._problem.observation_distribution(t, a, s), BridgedObservation)
        return self._seen[key].random()


def _float(value: Number) -> float:
    if is_symbolic(value):
        raise PlanningError(
            f"problem: got {brief(value)}; expected numbers to sample by. Substitute the symbols first."
        )
    return float(value)


class AgentPlanner(pomdp_py.Planner):
    """A planner for pomdp-py's loop that uses `decide`.

    Attributes:
        problem: The problem of `plan`; ``None`` for the agent's models, at discount 1 unless the agent has one.
    """

    problem: POMDP | None = None
    _agent_problem: tuple[Any, POMDP] | None = None

    def decide(self, problem: POMDP, belief: Belief | None = None, *, observation: Hashable = None) -> Decision:
        """Return the decision under the belief."""
        raise NotImplementedError

    def plan(self, agent: "pomdp_py.Agent") -> Any:
        """Return the action at the agent's current belief."""
        problem = self.problem
        if problem is None:
            if self._agent_problem is None or self._agent_problem[0] is not agent:
                self._agent_problem = (agent, POMDP.from_agent(agent))
            problem = self._agent_problem[1]
        belief = agent.belief
        if not isinstance(belief, Belief):
            belief = Belief({state: belief[state] for state in belief})
        observation = agent.history[-1][1] if agent.history else None
        return self.decide(problem, belief, observation=observation).action

    def update(self, agent: "pomdp_py.Agent", real_action: Any, real_observation: Any) -> None:
        """Do nothing: no tree is kept between steps, and the agent updates its own belief."""
