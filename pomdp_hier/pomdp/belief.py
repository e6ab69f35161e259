"""Belief: an immutable probability distribution over finitely many states."""

import math
import random
from collections.abc import Callable, Hashable, ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any

import numpy as np
import pomdp_py

from pomdp_hier._io.formats import held
from pomdp_hier._text import brief, shown
from pomdp_hier.errors import ModelError
from pomdp_hier.pomdp.numeric import (
    Number,
    is_nonnegative,
    is_symbolic,
    is_text,
    mean,
    nearly_equal,
    positive_part,
    sampled_outcome,
    total,
    unquoted,
)

# The largest distance from 1 of a sum of floats: far above the rounding of a long sum, far below any real error.
MASS_TOLERANCE = 1e-9
_FLOATS = {float}


class Belief(pomdp_py.GenerativeDistribution):
    """A probability distribution over states with finite support, immutable and hashable.

    It is a read-only mapping whose value is 0 off the support, and pomdp-py accepts it as an agent's belief. A belief
    does not know the states of a problem: a misspelt state has probability 0 as well. States of probability exactly 0
    are left out; nothing else is dropped or rescaled.

    Args:
        probabilities: A mapping, or pairs of state and probability: floats, fractions or sympy expressions. The
            probabilities of equal states are added.
        tolerance: The largest distance from 1 of a sum of floats; exact numbers must sum to 1.

    Raises:
        ModelError: A probability is negative or NaN, or the sum is not 1.

    Example:
        >>> b = Belief({"left": 0.85, "right": 0.15})
        >>> b["left"], b["nowhere"], b.support
        (0.85, 0, ('left', 'right'))
        >>> from fractions import Fraction
        >>> Belief.uniform(["a", "b", "c"], number=Fraction)["a"]
        Fraction(1, 3)

    References:
        Kaelbling, Littman and Cassandra (1998), section 3.
    """

    _hash: int | None = None

    def __init__(
        self, probabilities: Mapping[Any, Number] | Iterable[tuple[Any, Number]], *, tolerance: float = MASS_TOLERANCE
    ) -> None:
        if type(probabilities) is dict:
            known = _positive_floats(probabilities, tolerance)
            if known is not None:
                self._probabilities: dict[Any, Number] = known.copy() if known is probabilities else known
                return
        pairs = _nonnegative(probabilities, "probability", "in [0, 1]")
        weight_sum = total(pairs.values())
        if not nearly_equal(weight_sum, 1, tolerance):
            weights = not is_symbolic(weight_sum) and bool(0 < weight_sum < math.inf)
            raise ModelError(
                f"belief: got {len(pairs)} probabilities that sum to {weight_sum}; expected 1 (tolerance {tolerance})."
                + " Use Belief.normalized, if they are weights." * weights
            )
        self._probabilities = positive_part(pairs)

    @classmethod
    def normalized(cls, weights: Mapping[Any, Number] | Iterable[tuple[Any, Number]]) -> "Belief":
        """Return the belief proportional to the weights.

        Raises:
            ModelError: A weight is negative or NaN, or all are 0.

        Example:
            >>> Belief.normalized({"a": 1, "b": 3})["b"]
            0.75
        """
        pairs = _nonnegative(weights, "weight", "that is at least 0")
        weight_sum = total(pairs.values())
        if not is_symbolic(weight_sum) and not (weight_sum > 0 and math.isfinite(weight_sum)):
            raise ModelError(f"belief: got weights that sum to {weight_sum}; expected a positive finite sum.")
        if weight_sum == 1:  # integers stay exact, where a division would turn them into floats
            return cls(pairs)
        return cls({state: weight / weight_sum for state, weight in pairs.items()})

    @classmethod
    def certain(cls, state: Hashable) -> "Belief":
        """Return the belief with all probability on one state.

        Example:
            >>> Belief.certain("home").entropy()
            0.0
        """
        return belief_of_own({state: 1}, sums_to_one=True)

    @classmethod
    def uniform(cls, states: Iterable[Hashable], *, number: Callable[[int], Number] = float) -> "Belief":
        """Return the uniform belief over the states, in a number type such as float or ``Fraction``.

        Example:
            >>> Belief.uniform("ab")["b"]
            0.5
        """
        distinct = list(dict.fromkeys(states))
        if not distinct:
            raise ModelError("belief: got no state; expected at least one.")
        return cls(dict.fromkeys(distinct, number(1) / len(distinct)))

    # --- a read-only mapping -------------------------------------------------------------------------------------

    def __getitem__(self, state: Hashable) -> Number:
        return self._probabilities.get(state, 0)

    def probability(self, state: Hashable) -> Number:
        """Return the probability of the state, 0 off the support."""
        return self._probabilities.get(state, 0)

    def __setitem__(self, state: Hashable, value: Number) -> None:
        raise TypeError("a Belief is immutable; build a new one from a dict.")

    def __iter__(self) -> Iterator[Any]:
        return iter(self._probabilities)

    def __len__(self) -> int:
        return len(self._probabilities)

    def __contains__(self, state: object) -> bool:
        return state in self._probabilities

    def get(self, state: Hashable, default: Number = 0) -> Number:
        """Return the probability of the state, ``default`` off the support."""
        return self._probabilities.get(state, default)

    def keys(self) -> KeysView[Any]:
        """Return the states of positive probability."""
        return self._probabilities.keys()

    def values(self) -> ValuesView[Number]:
        """Return the positive probabilities."""
        return self._probabilities.values()

    def items(self) -> ItemsView[Any, Number]:
        """Return the pairs of state and positive probability."""
        return self._probabilities.items()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Belief):
            return NotImplemented
        return self._probabilities == other._probabilities

    __ne__ = object.__ne__

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._probabilities.items()))
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (tuple(self._probabilities.items()),)

    def __repr__(self) -> str:
        """Return the text of the belief, its floats to six significant digits; `items` has all digits."""
        return f"Belief({self._text(brief, brief)})"

    def __str__(self) -> str:
        """Return a dict of up to six states, with fractions such as 1/3 and states as they are printed."""
        return self._text(str, shown)

    def _text(self, number: Callable[[Any], str], name: Callable[[Any, int], str]) -> str:
        pairs = list(self._probabilities.items())[:6]
        values = (p.item() if isinstance(p, np.generic) else p for _, p in pairs)
        pairs_shown = ", ".join(
            f"{name(state, 40)}: {_rounded(p) if isinstance(p, float) else number(p)}"
            for (state, _), p in zip(pairs, values, strict=True)
        )
        return f"{{{pairs_shown}{f', ... {len(self) - 6} more' if len(self) > 6 else ''}}}"

    # --- derived quantities ------------------------------------------------------------------------------------

    @property
    def support(self) -> tuple[Any, ...]:
        """The states of positive probability, in the given order."""
        return tuple(self._probabilities)

    def expectation(self, function: Callable[[Any], Number]) -> Number:
        """Return the mean of a function of the state, ``sum_s b(s) f(s)``.

        Example:
            >>> Belief({1: 0.5, 3: 0.5}).expectation(lambda s: s)
            2.0
        """
        return mean([(p, function(state)) for state, p in self._probabilities.items()], lambda: "expectation")

    def entropy(self) -> float:
        """Return the Shannon entropy ``-sum_s b(s) ln b(s)``, in nats.

        Example:
            >>> round(Belief.uniform("abcd").entropy(), 4)
            1.3863
        """
        return abs(math.fsum(-float(p) * math.log(float(p)) for p in self._probabilities.values()))

    def sample(self, rng: np.random.Generator) -> Any:
        """Return a state sampled from the belief with the given generator."""
        return sampled_outcome(self._probabilities, rng.random())

    # --- the interface of pomdp-py's distributions --------------------------------------------------------------------

    def random(self) -> Any:
        """Return a state sampled with Python's global ``random``, as pomdp-py's planners do."""
        return sampled_outcome(self._probabilities, random.random())

    def mpe(self) -> Any:
        """Return the most probable state; the first if several tie."""
        return max(self._probabilities, key=self._probabilities.__getitem__)

    def argmax(self) -> Any:
        """Return the most probable state; the first if several tie."""
        return self.mpe()

    def get_histogram(self) -> dict[Any, Number]:
        """Return a new dict from state to positive probability."""
        return dict(self._probabilities)


def _rounded(probability: float) -> str:
    """Return six significant digits, and all of them where six would read as 0 or 1."""
    text = f"{probability:.6g}"
    return text if float(text) not in (0.0, 1.0) else repr(probability)


def histogram(distribution: pomdp_py.GenerativeDistribution) -> Mapping[Any, Number]:
    """Return the probabilities with which a distribution of pomdp-py samples its values.

    The sampler of weighted particles adds up the particles of one value; their ``get_histogram`` takes the mean.
    """
    if isinstance(distribution, pomdp_py.WeightedParticles) and not isinstance(distribution, pomdp_py.Particles):
        return Belief.normalized(distribution.particles).get_histogram()
    found: Mapping[Any, Number] = distribution.get_histogram()
    return found


def _restore(pairs: tuple[tuple[Any, Number], ...]) -> Belief:
    """Return the belief that was pickled, without a second check of its sum."""
    belief = Belief.__new__(Belief)
    belief._probabilities = dict(pairs)
    return belief


def belief_of_own(probabilities: dict[Any, Number], sums_to_one: bool = False) -> Belief:
    """Return ``Belief(probabilities)``, with its checks, of a dict that nobody else holds: it is not copied.

    Args:
        probabilities: The probability of each state.
        sums_to_one: Whether they are quotients by their own sum, a positive float. If none is 0 or less, they need no
            other check.
    """
    known: dict[Any, Number] | None = probabilities
    if not (sums_to_one and min(probabilities.values()) > 0):
        known = _positive_floats(probabilities, MASS_TOLERANCE)
    if known is None:
        return Belief(probabilities)
    belief = Belief.__new__(Belief)
    belief._probabilities = known
    return belief


def as_belief(belief: Any, tolerance: float = MASS_TOLERANCE) -> Belief:
    """Return the belief that a `Belief` or a mapping from state to probability stands for."""
    if isinstance(belief, Belief):
        return belief
    if isinstance(belief, Mapping):
        return Belief(belief, tolerance=tolerance)
    raise ModelError(f"belief: got {brief(belief)}; expected a Belief or a dict, {{state: probability}}.")


def _positive_floats(probabilities: dict[Any, Any], tolerance: float) -> dict[Any, Number] | None:
    """Return the positive ones of floats that sum to 1; ``None`` for values that need the slower checks."""
    values = probabilities.values()
    if set(map(type, values)) != _FLOATS:
        return None
    try:
        if not abs(math.fsum(values) - 1) <= tolerance:  # a sum with NaN is NaN
            return None
    except (OverflowError, ValueError):  # infinite
        return None
    least = min(values)
    if least > 0:
        return probabilities
    return positive_part(probabilities) if least == 0 else None


def _nonnegative(given: Any, what: str, expected: str) -> dict[Any, Number]:
    """Return the probability, or weight, of each state, none of them negative."""
    pairs = _pairs(given)
    for state, number in pairs.items():
        if not is_nonnegative(number):
            raise ModelError(
                f"belief: got {'the text ' * is_text(number)}{brief(number)} as the {what} of state {brief(state)}; "
                f"expected a number {expected}.{unquoted(number)}"
            )
    return pairs


def _pairs(probabilities: Any) -> dict[Any, Number]:
    """Return the probability of each state, from a mapping or from pairs."""
    probabilities = held("belief", probabilities, ModelError)
    if not isinstance(probabilities, str):
        try:
            pairs = dict(probabilities)
            if not isinstance(probabilities, Mapping | Belief) and len(pairs) < len(probabilities):
                pairs = dict.fromkeys(pairs, 0)
                for state, number in probabilities:
                    pairs[state] += number  # particles of one state
            return pairs
        except (TypeError, ValueError):  # not iterable, or not of pairs, or a state that cannot be hashed
            pass
    raise ModelError(
        f"belief: got {brief(probabilities)}; expected a dict, {{state: probability}}, of states that can be hashed. "
        "Use Belief.uniform(states) for equal probabilities, or Belief.certain(state)."
    )
