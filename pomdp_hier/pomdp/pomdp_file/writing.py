"""Writer of ``.pomdp`` files."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any

from pomdp_hier._io.writing import write_file
from pomdp_hier._text import brief
from pomdp_hier.errors import ModelError
from pomdp_hier.pomdp.array_models import ArrayObservation
from pomdp_hier.pomdp.belief import Belief
from pomdp_hier.pomdp.numeric import Number, as_float
from pomdp_hier.pomdp.problem import POMDP, require_problem

_WORD = re.compile(r"[^\s:*#]+")


def write_pomdp(problem: POMDP, path: str | os.PathLike[str] | IO[str]) -> None:
    """Write the problem as a ``.pomdp`` file, from which `read_pomdp` reads the same floats.

    Terminal states are written as absorbing states with reward 0. Names are kept if all states (actions, observations)
    have distinct names that are words; otherwise a count is written, with the names in comments. Fractions are written
    as the nearest float. Rewards are written for possible steps only. Observations in a state that the action never
    reaches are written as uniform.

    Args:
        problem: A problem with all actions legal everywhere, and observations independent of the previous state.
        path: The path, or a file that is open for text.

    Raises:
        ModelError: The format cannot express the problem, or a number is not finite.
        PomdpHierError: The file cannot be written.

    Example:
        >>> import io
        >>> from pomdp_hier.pomdp.pomdp_file import read_pomdp
        >>> stay = POMDP(transition=lambda s, a: s, observation=lambda s, a: "same", reward=lambda s, a: 1,
        ...              initial_belief={"here": 1}, legal_actions=["wait"], discount=0.5)
        >>> file = io.StringIO()
        >>> write_pomdp(stay, file)
        >>> read_pomdp(file.getvalue()).expected_reward("here", "wait")
        1.0

    References:
        Cassandra (1994-2003), the POMDP file format of pomdp-solve.
    """
    require_problem(problem, "write_pomdp")
    problem.require_state_rewards("a .pomdp file")
    lines = _lines(problem)
    if isinstance(path, str | os.PathLike):
        write_file(path, "".join(f"{line}\n" for line in lines))
    else:
        path.writelines(f"{line}\n" for line in lines)


def _lines(problem: POMDP) -> Iterator[str]:
    """Yield the lines of the file."""
    _check_writable(problem)
    states, actions = problem.states, problem.all_actions
    yield "# A POMDP in Cassandra's format, written by pomdp_hier."
    yield f"discount: {_number(problem.discount, 'discount')}"
    yield "values: reward"
    words: dict[str, dict[Any, str]] = {}
    spaces = {"states": states, "actions": actions, "observations": problem.all_observations}
    for kind, names in spaces.items():
        words[kind], declaration = _declared(kind, names)
        yield from declaration
    yield "start:"
    yield " ".join(_number(problem.initial_belief[s], f"initial belief of {brief(s)}") for s in states)
    everywhere = isinstance(problem.observation, ArrayObservation)
    for action in actions:
        a = words["actions"][action]
        reached = dict.fromkeys(states) if everywhere else {}
        for state in states:
            successors = {s: p for s, p in problem.successors(state, action).items() if p != 0}
            reached.update(dict.fromkeys(successors))
            yield from _row(f"T: {a} : {words['states'][state]}", successors, words["states"])
        for state in states:
            head = f"O: {a} : {words['states'][state]}"
            if state in reached:
                distribution = problem.observation_distribution(state, action, None)
                yield from _row(head, distribution, words["observations"])
            else:
                yield f"{head} uniform"
        for state in states:
            yield from _reward_lines(problem, state, action, words)


def _check_writable(problem: POMDP) -> None:
    if problem.legal_by != "state":
        raise ModelError(
            f"write_pomdp: got legal actions by {problem.legal_by}; expected every action to be legal everywhere, as "
            "the format requires."
        )
    if problem.observation.uses_state:
        raise ModelError(
            "write_pomdp: got observations that depend on the previous state; expected (next_state, action), as "
            "in O. Make the previous state a part of the next state."
        )
    everything = set(problem.all_actions)
    for state in problem.states:
        if problem.is_terminal(state):
            continue
        missing = everything - set(problem.actions(Belief.certain(state)))
        if missing:
            raise ModelError(
                f"write_pomdp: got {brief(min(missing, key=repr))}, which is not legal in state {brief(state)}; "
                "expected every action to be legal everywhere, as the format requires."
            )


def _declared(kind: str, names: tuple[Any, ...]) -> tuple[dict[Any, str], list[str]]:
    """Return the word of each name, and the lines of the declaration."""
    texts = [str(name) for name in names]
    numbered = [str(i) for i in range(len(names))]
    words = len(set(texts)) == len(texts) and all(map(_WORD.fullmatch, texts))
    if texts != numbered and words and not (len(texts) == 1 and texts[0][0] in "+-.0123456789"):
        return dict(zip(names, texts, strict=True)), [f"{kind}: {' '.join(texts)}"]
    comments = [] if texts == numbered else [f"# {i}: {brief(name, 200)}" for i, name in enumerate(names)]
    return dict(zip(names, numbered, strict=True)), [f"{kind}: {len(names)}", *comments]


def _row(head: str, distribution: Mapping[Any, Number], words: Mapping[Any, str]) -> Iterator[str]:
    """Yield a row of T or O, as a whole or by entries, whichever is shorter."""
    for name in distribution:
        if name not in words:
            raise ModelError(f"{head}: got {brief(name)}; expected a name of the problem's space of {len(words)}.")
    if len(distribution) * 3 > len(words):
        yield head
        yield " ".join(_number(distribution.get(name, 0), head) for name in words)
    else:
        for name, probability in distribution.items():
            yield f"{head} : {words[name]} {_number(probability, head)}"


def _reward_lines(problem: POMDP, state: Any, action: Any, words: Mapping[str, Mapping[Any, str]]) -> Iterator[str]:
    """Yield the rewards of one state and action, with wildcards for equal rewards."""
    head = f"R: {words['actions'][action]} : {words['states'][state]}"
    rewards: dict[Any, dict[Any, str]] = {}
    uses_observation = problem.reward_model.uses_observation and not problem.is_terminal(state)
    for next_state, probability in problem.successors(state, action).items():
        if probability == 0:
            continue
        made: Iterable[Any] = (None,)
        if uses_observation:
            distribution = problem.observation_distribution(next_state, action, state)
            made = [o for o, likelihood in distribution.items() if likelihood != 0]
        rewards[next_state] = {
            o: _number(problem.step_reward(state, action, next_state, o), f"{head}: the reward") for o in made
        }
    if len({reward for row in rewards.values() for reward in row.values()}) == 1:
        reward = next(iter(next(iter(rewards.values())).values()))
        if float(reward) != 0:
            yield f"{head} : * : * {reward}"
        return
    for next_state, row in rewards.items():
        start = f"{head} : {words['states'][next_state]}"
        if len(set(row.values())) == 1:
            yield f"{start} : * {next(iter(row.values()))}"
        else:
            yield from (f"{start} : {words['observations'][o]} {reward}" for o, reward in row.items())


def _number(value: Number, where: str) -> str:
    """Return the shortest decimal of the same float."""
    return repr(as_float(value, where))
