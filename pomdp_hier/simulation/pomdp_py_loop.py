"""Simulation in pomdp-py's own loop, with its Agent and Environment, as a check of `simulate`.

It is slow, as every step uses pomdp-py's objects.
"""

from functools import partial
from typing import Any

import numpy as np
from tqdm import tqdm

from pomdp_hier._progress import shown_progress
from pomdp_hier.planning.decision import Policy
from pomdp_hier.planning.policies import as_policy
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.pomdp_py_bridge import to_agent, to_environment
from pomdp_hier.pomdp.problem import POMDP, require_problem
from pomdp_hier.pomdp.spaces import unwrapped
from pomdp_hier.simulation.episodes import Decider, Episode, EpisodeRuns, check_simulation, return_of
from pomdp_hier.simulation.monte_carlo import SimulationResult
from pomdp_hier.simulation.return_bounds import Truncation


def simulate_in_pomdp_py(
    policy: Any,
    problem: POMDP,
    environment: POMDP | None = None,
    *,
    n_episodes: int = 1000,
    seed: int | None = 0,
    horizon: int | None = None,
    truncation_error: float = 1e-9,
    confidence: float = 0.95,
    n_jobs: int = 1,
    progress: bool | tqdm = False,
) -> SimulationResult:
    """Return the mean return of a policy over episodes of pomdp-py's loop: decide, execute, update the agent.

    The agent's belief is pomdp-py's, updated by Bayes' rule in the agent's model; the rewards are those of the
    environment in double precision.

    Args:
        policy: A `Policy` or a function of the belief. A policy with ``seeded`` gets one stream per episode; otherwise
            equal beliefs are decided once.
        problem: The agent's own model; its observations must not depend on the previous state.
        environment: The model of states, observations and rewards; the agent's own by default.
        n_episodes, seed, horizon, truncation_error, confidence, n_jobs, progress: As for `simulate`.

    Raises:
        ImpossibleObservationError: An observation has probability 0 in the agent's model.
        ModelError: pomdp-py cannot express the problem.

    Example:
        >>> fair = POMDP(transition=lambda s, a: "end", observation=lambda s, a: "done",
        ...              reward=lambda s, a: 1 if a == s else 0, terminal=["end"],
        ...              initial_belief={"heads": 0.5, "tails": 0.5}, legal_actions=["heads", "tails"])
        >>> result = simulate_in_pomdp_py(lambda belief: "heads", fair, n_episodes=200, seed=3)
        >>> low, high = result.interval
        >>> low < 0.5 < high
        True
    """
    check_simulation(n_episodes, None, 1, confidence, 1)
    for model in (problem,) if environment is None else (problem, environment):
        require_problem(model, "simulate_in_pomdp_py, after the policy")
    world, chosen = problem if environment is None else environment, as_policy(policy)
    build = partial(_Loop, chosen, problem, world, horizon, truncation_error)
    sent = {"policy": chosen, "problem": problem, "environment": world}
    with shown_progress(progress, "simulate", " episodes", n_episodes) as bar:
        runs = EpisodeRuns(build, sent, seed, n_jobs, bar)
        runs.run_until(n_episodes)
    return SimulationResult(
        values=np.array(runs.values),
        confidence=confidence,
        seconds_per_decision=runs.seconds_per_decision,
        unfinished=runs.unfinished,
        stopped_early=False,
        episodes=(),
        error=runs.error,
    )


class _Loop:
    """A runner of episodes on pomdp-py's objects."""

    def __init__(
        self, policy: Policy, problem: POMDP, world: POMDP, horizon: int | None, truncation_error: float
    ) -> None:
        self.decider = Decider(policy, problem)
        self.length = Truncation(world, problem, horizon, truncation_error)
        self.problem, self.world = problem, world

    def episode(self, seed: np.random.SeedSequence, *, keep: bool) -> Episode:
        """Return one run: decide, execute, update the agent."""
        policy_seed, environment_seed = seed.spawn(2)
        self.decider.begin(policy_seed)
        agent, place = to_agent(self.problem), to_environment(self.world, seed=environment_seed)
        terms: list[float] = []
        observation, finished, gamma = None, True, float(self.world.discount)
        while not place.is_terminal:
            belief = Belief({unwrapped(state): p for state, p in agent.belief.items()})
            if self.problem.is_terminal_belief(belief):
                break
            if self.length.is_reached(len(terms)):
                finished = False
                break
            decision = self.decider.decide(belief, observation, len(terms))
            seen, reward = place.execute(decision.action)
            terms.append(gamma ** len(terms) * float(reward))
            observation = unwrapped(seen)
            if not place.is_terminal:
                agent.update(decision.action, seen)
        return Episode((), return_of(terms), finished)
