"""Reader and writer of ``.pomdp`` files."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy import sparse

from pomdp_hier._arguments import Floats, is_path, is_real, unexpected
from pomdp_hier._io.formats import kind_of, unpacked
from pomdp_hier._io.writing import write_file
from pomdp_hier._text import brief
from pomdp_hier.errors import ModelError, ParameterError, PomdpFileError, PythonAdvice
from pomdp_hier.pomdp.array_models import ArrayObservation, ArrayTransition, ListedReward, Positions
from pomdp_hier.pomdp.belief import MASS_TOLERANCE, Belief
from pomdp_hier.pomdp.numeric import Number, as_float, total
from pomdp_hier.pomdp.pomdp_file.blocks import read_content
from pomdp_hier.pomdp.pomdp_file.grammar import FileContent
from pomdp_hier.pomdp.pomdp_file.statements import RewardTable, Source
from pomdp_hier.pomdp.problem import POMDP, require_problem

_DECLARES_STATES = re.compile(r"\bstates\s*:")
# The number of (state, next state, observation) triples per block of the mean rewards.
_BLOCK = 4_000_000


_HEAD = 10_000  # characters in which the root element of an XML file is found


def read_pomdp(
    source: str | os.PathLike[str] | IO[str] | IO[bytes],
    *,
    tolerance: float = 1e-5,
    normalize: bool = False,
    exact: bool = False,
) -> POMDP:
    """Return the problem of a ``.pomdp`` file.

    States are the file's names, or ``0 … n-1`` for a count. Every action is legal everywhere and no state is terminal,
    as the format cannot express either. ``problem.compiled`` costs array operations only.

    Args:
        source: A path (gzip is unpacked), an open file, or the text itself (a string with line breaks or a section
            ``states:``).
        tolerance: The largest distance from 1 of the sum of a distribution; the default is that of pomdp-solve. Such
            sums are not normalised.
        normalize: Divide each distribution by its sum.
        exact: Read decimals as ``fractions.Fraction``; distributions then sum to exactly 1, unless they are
            normalized.

    Raises:
        PomdpFileError: The file does not follow the grammar, or a distribution does not sum to 1; the message begins
            with file, line and column.
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
    if not (is_real(tolerance) and 0 <= tolerance < 1):
        raise ParameterError(f"tolerance: got {brief(tolerance)}; expected a number in [0, 1). Use 1e-5, for example.")
    content = read_content(Source(*_text_of(source)), tolerance=tolerance, normalize=normalize, exact=exact)
    states, actions, observations = content.states, content.actions, content.observations
    different = {id(m): m for m in (*content.transition, *content.observation)}  # actions share most of them
    matrices = {key: m if exact else m.floats() for key, m in different.items()}
    tolerance = max(2 * tolerance, MASS_TOLERANCE)  # twice: a sum may be rounded once more, in another order
    return POMDP(
        transition=ArrayTransition([matrices[id(m)] for m in content.transition], states, actions),
        observation=ArrayObservation([matrices[id(m)] for m in content.observation], states, actions, observations),
        reward=_FileReward(content),
        initial_belief=Belief(zip(states, content.start.tolist(), strict=True), tolerance=tolerance),
        discount=content.discount,
        terminal=(),
        legal_actions=actions,
        states=states,
        actions=actions,
        observations=observations,
        tolerance=tolerance,
    )


def _text_of(source: str | os.PathLike[str] | IO[str] | IO[bytes]) -> tuple[str, str]:
    """Return the name, for messages, and the text; gzip is unpacked."""
    raw: Any
    if isinstance(source, str) and ("\n" in source or "\r" in source or _DECLARES_STATES.search(source)):
        name, raw = "<text>", source
    elif isinstance(source, str | os.PathLike):
        if not is_path(source):
            raise PomdpFileError(
                f"source: got {brief(source)}, which is not a file name; expected a path, or text with line ends."
            )
        name = os.fspath(source)
        raw = Path(source).read_bytes()
    elif hasattr(source, "read"):
        name, raw = str(getattr(source, "name", "<stream>")), source.read()
    else:
        raise unexpected("source", source, "a path, an open file or the text of a .pomdp file")
    if isinstance(raw, bytes):
        raw = unpacked(raw, name, PomdpFileError)
        if b"\0" in raw:
            raise PomdpFileError(f"{name}:1:1: got {kind_of(raw).what} with NUL in it; expected a .pomdp file.")
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = raw.decode("latin-1")  # old files; only their comments and names can differ
    elif isinstance(raw, str):
        text = raw
    else:
        raise ParameterError(f"source: got {brief(raw)} from {name}; expected text or bytes.")
    text = text.removeprefix("\ufeff").rstrip("\x1a")
    if "<pomdpx" in text[:_HEAD].lower():
        raise PomdpFileError(
            f"{name}:1:1: got a POMDPX file (XML); expected a .pomdp file. Write its tables as one",
            PythonAdvice(", or pass them to POMDP.from_arrays"),
            ".",
        )
    return name, text


class _FileReward(ListedReward):
    """The R statements of a file as a model over names."""

    uses_next_state = False
    uses_observation = False

    def __init__(self, content: FileContent) -> None:
        self.table = content.reward
        self.spaces = (content.states, content.actions, content.observations)
        self.uses_next_state = self.table.uses_next_state
        self.uses_observation = self.table.uses_observation
        self._actions = Positions("action", content.actions)
        self._states = Positions("state", content.states)
        self._observations = Positions("observation", content.observations)

    def reward(self, state: Any, action: Any, next_state: Any = None, observation: Any = None) -> Number:
        t = self._states[next_state] if self.uses_next_state else 0
        o = self._observations[observation] if self.uses_observation else 0
        return self.table(self._actions[action], self._states[state], t, o)

    def expected(self, transition: Sequence[Any], observation: Sequence[Any]) -> Floats:
        n_actions, n_states = len(transition), len(self.spaces[0])
        if not (self.uses_next_state or self.uses_observation):
            actions, states = np.divmod(np.arange(n_actions * n_states), n_states)
            anything = np.zeros_like(actions)
            rewards = self.table.at((actions, states, anything, anything))
            return rewards.astype(np.float64).reshape(n_actions, n_states)
        named = self.table.named_actions()
        means: dict[tuple[int, int, int], Floats] = {}
        keys = []
        for a, (T, Z) in enumerate(zip(transition, observation, strict=True)):
            key = (a if a in named else -1, id(T), id(Z))  # actions that no statement names have the same rewards
            if key not in means:
                means[key] = _means(self.table, a, T, Z)
            keys.append(key)
        return np.array([means[key] for key in keys])


def _means(table: RewardTable, action: int, transition: sparse.csr_array, observation: sparse.csr_array) -> Floats:
    """Return ``[S]``, ``R(s, a) = sum_s' T(s, a, s') sum_o Z(s', a, o) R(s, a, s', o)`` for one action.

    Blocks of states limit the memory; each sum is correctly rounded, as in `POMDP.expected_reward`.
    """
    n_states = transition.shape[0]
    width = np.diff(observation.indptr) if table.uses_observation else np.ones(n_states, dtype=np.int64)
    # The cumulative number of (s', o) per state.
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
        nonzero = np.flatnonzero(rewards)
        terms = (weights[nonzero] * rewards[nonzero]).tolist()
        ends = np.searchsorted(states[nonzero], np.arange(start, stop + 1)).tolist()
        for i, (first, last) in enumerate(pairwise(ends)):
            if last > first:
                expected[start + i] = total(terms[first:last])
        start = stop
    return expected


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
