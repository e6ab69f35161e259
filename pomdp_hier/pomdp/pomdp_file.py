"""The ``.pomdp`` file format of Cassandra: read a problem, write a problem.

The reader takes the whole grammar and the habits of the files that are around; where readers of the format differ, it
takes what any of them takes:

- sections come in any order, on one line or many; ``#`` begins a comment; line ends are those of any system;
- states, actions and observations are given by names or by a count, and are referred to by name or by number; a name is
  any word without ``:``, ``*`` and ``#``, and where a name is a number, the name counts;
- several names after ``start:`` mean ``start include:``, and a colon before a number means nothing;
- without ``discount`` the discount is 1 (such files mean a finite horizon), without ``values`` they are rewards, and
  without ``start`` the initial belief is uniform;
- without ``observations`` the file is an MDP: every state is observed, and R has no observation;
- of several assignments to one number, the last counts; rewards that no statement gives are 0;
- ``values: cost`` turns the sign of every R, so that the problem always earns rewards.

References:
    Cassandra (1994-2003), the POMDP file format of pomdp-solve.
"""

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pomdp_hier.errors import ModelError, ParameterError
from pomdp_hier.pomdp._file.reader import FileContent, Reader
from pomdp_hier.pomdp._file.tables import RewardTable, Rows
from pomdp_hier.pomdp._file.text import Source
from pomdp_hier.pomdp.arrays import ArrayObservation, ArrayTransition
from pomdp_hier.pomdp.belief import MASS_TOLERANCE, Belief
from pomdp_hier.pomdp.models import RewardModel
from pomdp_hier.pomdp.numeric import Number, brief
from pomdp_hier.pomdp.problem import POMDP, require_problem
from pomdp_hier.pomdp.tabular import TabularPOMDP

__all__ = ["read_pomdp", "write_pomdp"]

_WORD = re.compile(r"[^\s:*#]+")
_DECLARES_STATES = re.compile(r"\bstates\s*:")
# How many (state, next state, observation) triples are weighed at once when rewards are averaged.
_BLOCK = 4_000_000


def read_pomdp(
    source: str | os.PathLike[str] | IO[str] | IO[bytes],
    *,
    tolerance: float = 1e-5,
    normalize: bool = False,
    exact: bool = False,
) -> POMDP:
    """Return the problem that a ``.pomdp`` file describes.

    States are the file's names, or ``0 … n-1`` where it gives a count. Every action is legal everywhere and no state is
    terminal, as the format has no word for either. ``problem.compiled`` costs array operations only.

    Args:
        source: A path, an open file, or the text itself (a string with line breaks or a section ``states:``).
        tolerance: How far the sum of a distribution may be from 1; the default is that of pomdp-solve. Sums within it
            are kept as they are.
        normalize: Divide each distribution by its sum, whatever that is.
        exact: Read decimals as ``fractions.Fraction``; every distribution must then sum to exactly 1, or be normalized.

    Raises:
        PomdpFileError: The file breaks the grammar or a distribution does not sum to 1; the message begins with file,
            line and column.
        OSError: The file cannot be opened.

    Example:
        >>> problem = read_pomdp('''
        ... discount: 0.95
        ... values: reward
        ... states: left right
        ... actions: listen
        ... observations: 2
        ... T: listen identity
        ... O: listen
        ... 0.85 0.15
        ... 0.15 0.85
        ... R: * : * : * : * -1
        ... ''')
        >>> problem.states, problem.observation_distribution("left", "listen", "left")
        (('left', 'right'), {0: 0.85, 1: 0.15})

    References:
        Cassandra (1994-2003), the POMDP file format of pomdp-solve.
    """
    if not 0 <= tolerance < 1:
        raise ParameterError(f"tolerance: {tolerance} is not in [0, 1); it is how far a sum may be from 1")
    name, text = _text_of(source)
    content = Reader(Source(name, text), tolerance=tolerance, normalize=normalize, exact=exact).read()
    return FilePOMDP(content, tolerance)


def _text_of(source: str | os.PathLike[str] | IO[str] | IO[bytes]) -> tuple[str, str]:
    """Return the name, for messages, and the text."""
    raw: str | bytes
    if isinstance(source, str) and ("\n" in source or "\r" in source or _DECLARES_STATES.search(source)):
        name, raw = "<text>", source
    elif isinstance(source, str | os.PathLike):
        name, raw = os.fspath(source), Path(source).read_bytes()
    else:
        name, raw = str(getattr(source, "name", "<stream>")), source.read()
    if isinstance(raw, bytes):
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = raw.decode("latin-1")  # old files; only their comments and names can differ
    else:
        text = raw
    return name, text.removeprefix("\ufeff").rstrip("\x1a")


class _FileReward(RewardModel):
    """The file's R as a model over names."""

    uses_next_state = False
    uses_observation = False

    def __init__(self, content: FileContent) -> None:
        self.table = content.reward
        self.uses_next_state = self.table.uses_next_state
        self.uses_observation = self.table.uses_observation
        self._actions = {name: i for i, name in enumerate(content.actions)}
        self._states = {name: i for i, name in enumerate(content.states)}
        self._observations = {name: i for i, name in enumerate(content.observations)}

    def reward(self, state: Any, action: Any, next_state: Any = None, observation: Any = None) -> Number:
        t = self._states[next_state] if self.uses_next_state else 0
        o = self._observations[observation] if self.uses_observation else 0
        return self.table(self._actions[action], self._states[state], t, o)


class FilePOMDP(POMDP):
    """A problem that was read from a file; it is compiled from the file's own matrices."""

    def __init__(self, content: FileContent, tolerance: float) -> None:
        states, actions, observations = content.states, content.actions, content.observations
        exact = content.start.dtype == object
        matrices = {id(m): m if exact else _csr(m) for m in (*content.transition, *content.observation)}
        tolerance = max(2 * tolerance, MASS_TOLERANCE)  # twice: a sum may be rounded once more, in another order
        super().__init__(
            transition=ArrayTransition([matrices[id(m)] for m in content.transition], states, actions),
            observation=ArrayObservation([matrices[id(m)] for m in content.observation], states, actions, observations),
            reward=_FileReward(content),
            initial_belief=Belief(zip(states, content.start.tolist(), strict=True), tolerance=tolerance),
            discount=content.discount,
            legal_actions=actions,
            states=states,
            actions=actions,
            observations=observations,
            tolerance=tolerance,
        )
        self._content = content

    @cached_property
    def compiled(self) -> TabularPOMDP:
        """The same problem as arrays, in float64; compiled once."""
        content = self._content
        n_actions, n_states = len(content.actions), len(content.states)
        matrices = {id(m): _csr(m) for m in (*content.transition, *content.observation)}
        transition = tuple(matrices[id(m)] for m in content.transition)
        observation = tuple(matrices[id(m)] for m in content.observation)
        rewards = [_expected_rewards(content.reward, a, transition[a], observation[a]) for a in range(n_actions)]
        return TabularPOMDP(
            states=content.states,
            actions=content.actions,
            observations=content.observations,
            transition=transition,
            observation=observation,
            joint=None,
            reward=np.array(rewards, dtype=np.float64),
            discount=float(content.discount),
            initial=content.start.astype(np.float64),
            terminal=np.zeros(n_states, dtype=bool),
            legal=np.ones((n_actions, n_states), dtype=bool),
            tolerance=self.tolerance,
        )


def _csr(rows: Rows) -> sparse.csr_array:
    """Return the rows as a float64 matrix."""
    shape = (len(rows.indptr) - 1, rows.n_columns)
    return sparse.csr_array((rows.values.astype(np.float64), rows.columns, rows.indptr), shape=shape)


def _expected_rewards(
    table: RewardTable, action: int, transition: sparse.csr_array, observation: sparse.csr_array
) -> NDArray[np.float64]:
    """``[S]``, ``R(s, a) = sum_s' T(s, a, s') sum_o Z(s', a, o) R(s, a, s', o)`` for one action.

    It takes a few states at a time; each sum is correctly rounded, as `POMDP.expected_reward` has it.
    """
    n_states = transition.shape[0]
    width = np.diff(observation.indptr) if table.uses_observation else np.ones(n_states, dtype=np.int64)
    # How many (s', o) follow the states before each.
    before = np.append(0, np.cumsum(width[transition.indices]))[transition.indptr]
    expected = np.zeros(n_states)
    start = 0
    while start < n_states:
        stop = max(start + 1, int(np.searchsorted(before, before[start] + _BLOCK, side="right")) - 1)
        span = slice(transition.indptr[start], transition.indptr[stop])
        states = np.repeat(np.arange(start, stop), np.diff(transition.indptr[start : stop + 1]))
        next_states, weights = transition.indices[span].astype(np.int64), transition.data[span]
        observations = np.zeros(len(states), dtype=np.int64)
        if table.uses_observation:
            counts = width[next_states]
            within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            position = np.repeat(observation.indptr[next_states], counts) + within
            states, next_states = np.repeat(states, counts), np.repeat(next_states, counts)
            weights = np.repeat(weights, counts) * observation.data[position]
            observations = observation.indices[position].astype(np.int64)
        rewards = table.at((np.full(len(states), action), states, next_states, observations)).astype(np.float64)
        earned = np.flatnonzero(rewards)
        terms = (weights[earned] * rewards[earned]).tolist()
        ends = np.searchsorted(states[earned], np.arange(start, stop + 1)).tolist()
        for i, (first, last) in enumerate(pairwise(ends)):
            if last > first:
                expected[start + i] = math.fsum(terms[first:last])
        start = stop
    return expected


def write_pomdp(problem: POMDP, path: str | os.PathLike[str] | IO[str]) -> None:
    """Write the problem as a ``.pomdp`` file, with numbers that `read_pomdp` turns into the same floats again.

    Terminal states are written as absorbing states that earn 0. Names are kept where all states (actions,
    observations) have distinct names that are words; otherwise a count is written and the names stand in comments.
    Fractions are written as the nearest float. Rewards are written where they can be earned; observations after a
    state that the action never reaches, where the model need not have any, are written as uniform.

    Args:
        problem: Any problem whose actions are legal everywhere and whose observation does not depend on the state left.
        path: Where to write, or a file open for text.

    Raises:
        ModelError: The format cannot say what the problem does, or a number is not finite.

    Example:
        >>> import io
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
    lines = _lines(problem)
    if isinstance(path, str | os.PathLike):
        whole = "".join(f"{line}\n" for line in lines)  # a problem that cannot be written leaves no half a file
        Path(path).write_text(whole, encoding="utf-8", newline="\n")
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
            f"write_pomdp: legal actions by {problem.legal_by} cannot be written; the format has every action legal "
            "everywhere"
        )
    if problem.observation.uses_state:
        raise ModelError(
            "write_pomdp: the observation depends on the state that was left, and O has no place for it; put what it "
            "depends on into the state"
        )
    everything = set(problem.all_actions)
    for state in problem.states:
        if problem.is_terminal(state):
            continue
        missing = everything - set(problem.actions(Belief.certain(state)))
        if missing:
            raise ModelError(
                f"write_pomdp: {brief(min(missing, key=repr))} is not legal in state {brief(state)}; "
                "the format has every action legal everywhere"
            )


def _declared(kind: str, names: tuple[Any, ...]) -> tuple[dict[Any, str], list[str]]:
    """Return the word for each name, and the lines that declare them."""
    texts = [str(name) for name in names]
    numbered = [str(i) for i in range(len(names))]
    words = len(set(texts)) == len(texts) and all(map(_WORD.fullmatch, texts))
    if texts != numbered and words and not (len(texts) == 1 and texts[0][0] in "+-.0123456789"):
        return dict(zip(names, texts, strict=True)), [f"{kind}: {' '.join(texts)}"]
    comments = [] if texts == numbered else [f"# {i}: {brief(name, 200)}" for i, name in enumerate(names)]
    return dict(zip(names, numbered, strict=True)), [f"{kind}: {len(names)}", *comments]


def _row(head: str, distribution: Mapping[Any, Number], words: Mapping[Any, str]) -> Iterator[str]:
    """Yield a row of T or O: as a whole, or entry by entry where that is shorter."""
    for name in distribution:
        if name not in words:
            raise ModelError(f"{head}: {brief(name)} is not in the problem's space of {len(words)}")
    if len(distribution) * 3 > len(words):
        yield head
        yield " ".join(_number(distribution.get(name, 0), head) for name in words)
    else:
        for name, probability in distribution.items():
            yield f"{head} : {words[name]} {_number(probability, head)}"


def _reward_lines(problem: POMDP, state: Any, action: Any, words: Mapping[str, Mapping[Any, str]]) -> Iterator[str]:
    """Yield the rewards of one state and action, with wildcards where they do not differ."""
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
        place = f"{head} : {words['states'][next_state]}"
        if len(set(row.values())) == 1:
            yield f"{place} : * {next(iter(row.values()))}"
        else:
            yield from (f"{place} : {words['observations'][o]} {reward}" for o, reward in row.items())


def _number(value: Number, where: str) -> str:
    """Return the shortest decimal that is read as the same float."""
    try:
        number = float(value)
    except TypeError as error:
        raise ModelError(f"{where}: {brief(value)} is not a number; substitute the symbols before writing") from error
    if not math.isfinite(number):
        raise ModelError(f"{where}: {number} is not finite")
    return repr(number)
