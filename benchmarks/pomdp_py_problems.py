"""Conversion of pomdp-py's problems: lines, checks, seconds, and returns of POUCT before, in and after conversion.

Two tables. The first brings each of pomdp-py's finite problems in with one call, checks it, and lets three planners
act in pomdp-py's own environment: pomdp-py's POUCT on the agent as it came (there), the POUCT of this package on the
problem (here), and pomdp-py's POUCT on `to_agent` of the problem (out again). All three get the exact belief after each
observation and search anew from it, with the same depth, number of runs and exploration. The second table says what
exploring, compiling and checking a grid of named cells take beside asking the models alone.

Two of the problems do not run on Python 3.11 or without pygame as they are: sets are sorted for ``random.sample``,
which no longer takes them, and an empty module stands in for pygame, which only draws.
"""

import argparse
import copy
import inspect
import json
import math
import random
import statistics
import sys
import time
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pomdp_py

from pomdp_hier import POMDP, BayesUpdater, check_problem
from pomdp_hier.planning.pomdp_py_planners import POUCT
from pomdp_hier.pomdp import to_agent
from pomdp_hier.pomdp.spaces import seeded_random, unwrapped

DISCOUNT = 0.95


# --- pomdp-py's problems, and the one call that brings each in -------------------------------------------------------


def tiger() -> tuple[Any, Callable[[Any], POMDP]]:
    """Two doors."""
    from pomdp_py.problems.tiger.tiger_problem import TigerProblem

    def bring_in(agent: Any) -> POMDP:
        return POMDP.from_agent(agent, discount=DISCOUNT)

    return TigerProblem.create(), bring_in


def rocksample() -> tuple[Any, Callable[[Any], POMDP]]:
    """A rover on 3 x 3 cells with two rocks."""
    from pomdp_py.problems.rocksample.rocksample_problem import create_instance

    def bring_in(agent: Any) -> POMDP:
        return POMDP.from_agent(agent, discount=DISCOUNT, terminal=lambda s: s.terminal, normalize=True)

    return create_instance(3, 2), bring_in


def load_unload() -> tuple[Any, Callable[[Any], POMDP]]:
    """A corridor of 11 cells, loading at one end and unloading at the other."""
    from pomdp_py.problems.load_unload import load_unload as domain

    def bring_in(agent: Any) -> POMDP:
        return POMDP.from_agent(agent, discount=DISCOUNT, normalize=True)

    return domain.LoadUnloadProblem(domain.LUState(5, False), domain.generate_init_belief(100)), bring_in


def tag(world: int = 1) -> tuple[Any, Callable[[Any], POMDP]]:
    """A pursuit on 12 cells, or 29; its probabilities contradict its samples, which are counted instead."""
    from pomdp_py.problems.tag.example_worlds import world0, world1
    from pomdp_py.problems.tag.problem import GridMap, TagProblem

    def bring_in(agent: Any) -> POMDP:
        return POMDP.from_agent(agent, discount=DISCOUNT, terminal=lambda s: s.target_found, n_samples=100)

    start, target = ((0, 2), (2, 0)) if world else ((0, 4), (5, 3))
    return TagProblem(start, target, GridMap.from_str((world1 if world else world0)[0])), bring_in


def large_tag() -> tuple[Any, Callable[[Any], POMDP]]:
    """The pursuit on the 29 cells of the paper."""
    return tag(0)


def mos() -> tuple[Any, Callable[[Any], POMDP]]:
    """Search for an object on 3 x 3 cells; it has no probabilities, and its samples are deterministic."""
    from pomdp_py.problems.multi_object_search.domain.action import ALL_MOTION_ACTIONS, Find, Look
    from pomdp_py.problems.multi_object_search.problem import MosOOPOMDP, make_proximity_sensor

    robot, looking = -ord("r"), [*ALL_MOTION_ACTIONS, Look]

    def bring_in(agent: Any) -> POMDP:
        return POMDP.from_agent(
            agent,
            discount=DISCOUNT,
            terminal=lambda s: bool(s.object_states[robot].objects_found),
            actions=[*looking, Find],
            legal_actions=lambda s: [*looking, Find] if s.object_states[robot]["camera_direction"] else looking,
            n_samples=1,
        )

    sensors = {"r": make_proximity_sensor(1.5, False)}
    return MosOOPOMDP("r", grid_map="r..\n...\n..T", sensors=sensors, prior={}), bring_in


# --- acting in pomdp-py's environment --------------------------------------------------------------------------------


@dataclass
class Search:
    """The settings of all three planners."""

    depth: int
    simulations: int
    exploration: float
    steps: int
    options: dict[str, Any] = field(default_factory=dict)  # for the environment
    prelude: tuple[Any, Any] | None = (
        None  # in the history before the first step: mos lets nobody find before two steps
    )

    def pouct(self, agent: Any) -> Any:
        """pomdp-py's planner."""
        return pomdp_py.POUCT(
            max_depth=self.depth,
            num_sims=self.simulations,
            discount_factor=DISCOUNT,
            exploration_const=self.exploration,
            rollout_policy=agent.policy_model,
        )


def episode(problem: POMDP, make: Callable[[], Any], search: Search, planner: str, seed: int) -> float:
    """The discounted return of one run in pomdp-py's environment."""
    agent, environment = fresh(make)[0].agent, fresh(make)[0].env
    if search.prelude is not None:
        agent.update_history(*search.prelude)
    with seeded_random(seed):
        environment.apply_transition(copy.deepcopy(problem.initial_belief.random()))
        belief, updater = problem.initial_belief, BayesUpdater(problem)
        observation, earned = None, []
        here = POUCT(search.depth, search.simulations, exploration=search.exploration, seed=seed)
        for step in range(search.steps):
            if problem.is_terminal_belief(belief) or problem.is_terminal(environment.state):
                break
            if planner == "here":
                action = here.decide(problem, belief, observation=observation).action
            elif planner == "there":
                agent.set_belief(pomdp_py.Histogram({s: float(p) for s, p in belief.items()}))
                agent.tree = None
                action = search.pouct(agent).plan(agent)
            else:
                out = to_agent(problem, belief)
                action = unwrapped(search.pouct(out).plan(out))
            reward = environment.state_transition(action, execute=True, **search.options)
            observation = environment.provide_observation(agent.observation_model, action)
            earned.append(DISCOUNT**step * reward)
            agent.update_history(action, observation)
            if not problem.is_terminal(environment.state):
                belief = updater.update(belief, action, observation)
    return math.fsum(earned)


def fresh(make: Callable[[], Any]) -> Any:
    """A problem of pomdp-py, reproducible, and the function that converts it."""
    with seeded_random(3):
        return make()


def interval(values: list[float]) -> tuple[float, float]:
    """The mean, and half of its 95 % interval."""
    return statistics.mean(values), 1.96 * statistics.stdev(values) / math.sqrt(len(values))


# --- the tables ------------------------------------------------------------------------------------------------------


@contextmanager
def made_to_run() -> Iterator[None]:
    """Context in which pomdp-py's tag and mos run: sets can be sampled, and drawing packages are optional."""
    sample = random.sample
    for name in ("pygame", "cv2"):
        try:
            __import__(name)
        except ImportError:
            sys.modules[name] = types.ModuleType(name)
    random.sample = lambda population, k, **more: sample(  # type: ignore[assignment,misc]
        sorted(population, key=str) if isinstance(population, (set, frozenset)) else population, k, **more
    )
    try:
        yield
    finally:
        random.sample = sample


def one_row(name: str, make: Callable[[], Any], search: Search | None, episodes: int) -> dict[str, Any]:
    """Return lines, sizes, seconds, issues, and the returns of the three planners for a problem."""
    world, bring_in = fresh(make)
    lines = len(inspect.getsource(bring_in).strip().splitlines()) - 1
    began = time.process_time()
    problem = bring_in(world.agent)
    compiled = problem.compiled
    brought = time.process_time()
    issues = check_problem(problem)
    row: dict[str, Any] = {
        "problem": name,
        "lines": lines,
        "states": compiled.n_states,
        "actions": compiled.n_actions,
        "observations": compiled.n_observations,
        "cpu_s_in": brought - began,
        "cpu_s_check": time.process_time() - brought,
        "issues": dict(Counter(issue.code for issue in issues)),
    }
    for planner in ("there", "here", "out again") if search is not None else ():
        began = time.process_time()
        values = [episode(problem, make, search, planner, seed) for seed in range(episodes)]
        row[planner] = {"return": interval(values), "cpu_s": time.process_time() - began}
    return row


def said(row: dict[str, Any], planner: str) -> str:
    """A mean return with its interval."""
    return "{:.2f} ± {:.2f}".format(*row[planner]["return"]) if planner in row else "–"


def print_problems(rows: list[dict[str, Any]]) -> None:
    """The table of problems, as Markdown."""
    print(
        "| problem | lines | states × actions × observations | in, CPU s | check, CPU s | issues "
        "| there | here | out again |"
    )
    print("|---|---:|---:|---:|---:|---|---:|---:|---:|")
    for row in rows:
        issues = ", ".join(f"{count} {code}" for code, count in row["issues"].items()) or "none"
        print(
            f"| {row['problem']} | {row['lines']} | {row['states']} × {row['actions']} × {row['observations']} "
            f"| {row['cpu_s_in']:.2f} | {row['cpu_s_check']:.2f} | {issues} "
            f"| {said(row, 'there')} | {said(row, 'here')} | {said(row, 'out again')} |"
        )


def grid(side: int, n_observations: int) -> POMDP:
    """A walk on ``side`` x ``side`` cells whose column is observed, with any error."""
    moves = {"north": (0, 1), "south": (0, -1), "east": (1, 0), "west": (-1, 0)}
    cells = [(x, y) for x in range(side) for y in range(side)]

    def transition(cell: tuple[int, int], move: str) -> dict[Any, float]:
        there = tuple(min(max(c + step, 0), side - 1) for c, step in zip(cell, moves[move], strict=True))
        return {cell: 1.0} if there == cell else {there: 0.9, cell: 0.1}

    def observation(cell: tuple[int, int], move: str) -> dict[int, float]:
        weights = [1 / (1 + abs(cell[0] - o)) for o in range(n_observations)]
        mass = sum(weights)
        return {o: weight / mass for o, weight in enumerate(weights)}

    return POMDP(
        transition=transition,
        observation=observation,
        reward=lambda cell, move: -1.0,
        initial_belief=dict.fromkeys(cells, 1 / len(cells)),
        discount=DISCOUNT,
        legal_actions=list(moves),
    )


def time_grid(side: int, n_observations: int) -> dict[str, float]:
    """Return CPU seconds of calling the models once per row, and of exploring, compiling and checking."""
    problem = grid(side, n_observations)

    def ask_all() -> None:
        for cell in problem.initial_belief:
            for move in problem.legal_everywhere or ():
                problem.transition.distribution(cell, move)
                problem.observation.distribution(cell, move)

    seconds = {}
    for name, work in {
        "the models alone": ask_all,
        "explore": lambda: problem.states,
        "compile": lambda: problem.compiled,
        "check": lambda: check_problem(problem),
    }.items():
        began = time.process_time()
        work()
        seconds[name] = time.process_time() - began
    return seconds


def cases() -> list[tuple[str, Callable[[], Any], Search | None]]:
    """Return the problems with their search settings; the largest is only converted."""
    from pomdp_py.problems.multi_object_search.domain.action import MoveEast
    from pomdp_py.problems.multi_object_search.domain.observation import MosOOObservation

    found = Search(4, 200, 1000, 12, {"robot_id": -ord("r")}, (MoveEast, MosOOObservation({})))
    return [
        ("tiger", tiger, Search(3, 300, 50, 10)),
        ("rocksample 3 × 3, 2 rocks", rocksample, Search(5, 200, 20, 12)),
        ("load_unload", load_unload, Search(12, 100, 110, 30)),
        ("tag, 12 cells", tag, Search(5, 200, 20, 25)),
        ("tag, 29 cells", large_tag, None),
        ("mos 3 × 3, 1 object", mos, found),
    ]


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pomdp_py_problems", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two runs per planner, and a small grid")
    parser.add_argument("--episodes", type=int, metavar="N", help="runs per planner (20)")
    parser.add_argument("--only", metavar="WORD", default="", help="problems whose name has this in it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    arguments = parser.parse_args()
    episodes = arguments.episodes or (2 if arguments.quick else 20)
    with made_to_run(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = [
            one_row(name, make, search, episodes)
            for name, make, search in cases()
            if arguments.only in name and not (arguments.quick and search is None)
        ]
    print_problems(rows)
    side, n_observations = (20, 20) if arguments.quick else (100, 100)
    seconds = time_grid(side, n_observations)
    print(f"\nA grid of {side**2:,} states, 4 actions, {n_observations} observations, CPU seconds")
    for name, value in seconds.items():
        print(f"  {name:20}{value:8.2f}")
    if arguments.json:
        arguments.json.write_text(json.dumps({"problems": rows, "grid": seconds}, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
