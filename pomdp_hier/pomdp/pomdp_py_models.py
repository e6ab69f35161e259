"""Models of pomdp-py's interface, with single probabilities and samples, as models with whole rows."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pomdp_py

from pomdp_hier._text import brief, counted
from pomdp_hier.errors import ModelError
from pomdp_hier.pomdp.models import MODEL_ERRORS, ObservationModel, RewardModel, TransitionModel
from pomdp_hier.pomdp.numeric import Number, positive_part, total

# An outcome as probable as what a row lacks would stay away from draws after the last new one with probability e^-20.
_EXPECTED_MISSES = 20
_MOST_DRAWS = 10_000
_NO_SAMPLE = (pomdp_py.TransitionModel.sample, pomdp_py.ObservationModel.sample)


def asked(location: Callable[[], str], remedy: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of another package's function; an error names the location.

    Args:
        location: Returns the location, for an error.
        remedy: What to do if the function cannot be changed.
        function: The function.
        arguments: Its arguments.

    Raises:
        ModelError: The function raised.

    Example:
        >>> asked(lambda: "transition from 'a'", "pass states=[...]", lambda s: s.x, "a")
        Traceback (most recent call last):
        ...
        pomdp_hier.errors.ModelError: transition from 'a': got AttributeError from <lambda> (...); ...
    """
    try:
        return function(*arguments)
    except MODEL_ERRORS as error:
        name = getattr(function, "__qualname__", None) or type(function).__name__
        raise ModelError(
            f"{location()}: got {type(error).__name__} from {name.removeprefix('<locals>.')} ({error}); "
            f"expected an answer. Change it, or {remedy}."
        ) from error


class ForeignRows:
    """The rows of one model, each the probabilities of all outcomes, computed once.

    Listed outcomes get their ``probability``. Otherwise ``sample`` finds the outcomes, and the row is complete once
    their probabilities sum to 1. An incomplete row ends when its missing outcomes were due 20 times since the last new
    outcome, or after 10,000 samples. With ``n_samples``, rows are the frequencies of n samples instead.

    Args:
        model: A model of pomdp-py's interface.
        outcomes: All outcomes, where they are listed.
        form: The location of a row as text, with one ``{}`` per argument of the model.
        space: The argument to pass where outcomes cannot be sampled, such as ``states``.
        tolerance: The largest distance from 1 of the sum of a complete row.
        normalize: Whether to divide rows by their sums.
        n_samples: The number of samples per row, or ``None`` for probabilities.
    """

    def __init__(
        self,
        model: Any,
        outcomes: Sequence[Any] | None,
        form: str,
        space: str,
        *,
        tolerance: float,
        normalize: bool,
        n_samples: int | None,
    ) -> None:
        self._model = model
        self._outcomes = outcomes
        self._form = form
        self._space = space
        self._tolerance = tolerance
        self._normalize = normalize
        self._n_samples = n_samples
        self._known: dict[tuple[Any, ...], Mapping[Any, Number]] = {}
        self._random = random.Random(0).getstate()

    def of(self, *given: Any) -> Mapping[Any, Number]:
        """Return the row for the arguments, without exact zeros."""
        if given not in self._known:
            self._known[given] = self._row(given)
        return self._known[given]

    @property
    def can_differ(self) -> bool:
        """Whether the model has samples that can be compared with its probabilities."""
        return self._n_samples is None and type(self._model).sample not in _NO_SAMPLE

    def drawn(self, *given: Any) -> Any:
        """Return one sample of the model."""
        return asked(lambda: self._location(given), f"pass {self._space}=[...]", self._model.sample, *given)

    def _location(self, given: tuple[Any, ...]) -> str:
        return self._form.format(*map(brief, given))

    def _row(self, given: tuple[Any, ...]) -> Mapping[Any, Number]:
        if self._n_samples is not None:
            row = self._counted(given, self._n_samples)
        elif self._outcomes is not None:
            row = positive_part({outcome: self._probability(outcome, given) for outcome in self._outcomes})
        else:
            row = self._found(given)
        if not self._normalize:
            return row
        row_sum = total(row.values())
        if not row_sum > 0:
            raise ModelError(
                f"{self._location(given)}: got probabilities of {counted(len(row), 'outcome')} "
                f"that sum to {brief(row_sum)}; "
                "expected a positive sum. Change the model, or count samples of it with n_samples=1000."
            )
        return row if row_sum == 1 else {outcome: p / row_sum for outcome, p in row.items()}

    def _probability(self, outcome: Any, given: tuple[Any, ...]) -> Number:
        return asked(
            lambda: f"probability of {brief(outcome)}, {self._location(given)}",
            "count samples instead (n_samples=1000)",
            self._model.probability,
            outcome,
            *given,
        )

    def _found(self, given: tuple[Any, ...]) -> Mapping[Any, Number]:
        """Return the probabilities of the outcomes that samples find."""
        row: dict[Any, Number] = {}
        row_sum, quiet = 0.0, 0
        with _Stream(self):
            for _ in range(_MOST_DRAWS):
                outcome = self.drawn(*given)
                quiet += 1
                if outcome not in row:
                    quiet = 0
                    row[outcome] = self._probability(outcome, given)
                    row_sum = total(row.values())
                if row_sum >= 1 - self._tolerance or quiet * (1 - row_sum) >= _EXPECTED_MISSES:
                    break
        return positive_part(row)

    def _counted(self, given: tuple[Any, ...], n: int) -> Mapping[Any, Number]:
        counts: dict[Any, int] = {}
        with _Stream(self):
            for _ in range(n):
                outcome = self.drawn(*given)
                counts[outcome] = counts.get(outcome, 0) + 1
        return {outcome: count / n for outcome, count in counts.items()}


class _Stream:
    """A scope in which Python's global ``random`` continues the stream of the rows."""

    def __init__(self, rows: ForeignRows) -> None:
        self._rows = rows

    def __enter__(self) -> None:
        self._before = random.getstate()
        random.setstate(self._rows._random)

    def __exit__(self, *_: object) -> None:
        self._rows._random = random.getstate()
        random.setstate(self._before)


class ForeignTransition(TransitionModel):
    """A transition model of pomdp-py's interface."""

    def __init__(self, model: pomdp_py.TransitionModel, states: Sequence[Any] | None, **how: Any) -> None:
        self.rows = ForeignRows(model, states, "transition from {} under {}", "states", **how)

    def distribution(self, state: Any, action: Any) -> Mapping[Any, Number]:
        return self.rows.of(state, action)

    def sample(self, state: Any, action: Any) -> Any:
        """Return a sample of the model, which `check_problem` compares with its probabilities."""
        return self.rows.drawn(state, action) if self.rows.can_differ else super().sample(state, action)


class ForeignObservation(ObservationModel):
    """An observation model of pomdp-py's interface."""

    uses_state = False

    def __init__(self, model: pomdp_py.ObservationModel, observations: Sequence[Any] | None, **how: Any) -> None:
        self.rows = ForeignRows(model, observations, "observation in {} after {}", "observations", **how)

    def distribution(self, next_state: Any, action: Any, state: Any = None) -> Mapping[Any, Number]:
        return self.rows.of(next_state, action)

    def sample(self, next_state: Any, action: Any) -> Any:
        """Return a sample of the model, which `check_problem` compares with its probabilities."""
        return self.rows.drawn(next_state, action) if self.rows.can_differ else super().sample(next_state, action)


class ForeignReward(RewardModel):
    """A reward model of pomdp-py's interface, whose ``sample`` must not be random."""

    uses_observation = False

    def __init__(self, model: pomdp_py.RewardModel) -> None:
        self._model = model

    def reward(self, state: Any, action: Any, next_state: Any, observation: Any = None) -> Number:
        return asked(
            lambda: f"reward of {brief(action)} from {brief(state)} to {brief(next_state)}",
            "pass a reward model with the problem",
            self._model.sample,
            state,
            action,
            next_state,
        )
