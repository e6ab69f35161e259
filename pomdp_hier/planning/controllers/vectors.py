"""A policy of alpha vectors: at each belief, the action of the best of them."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pomdp_hier._arrays import Floats, Ints
from pomdp_hier.errors import ModelError
from pomdp_hier.planning.decision import Decision
from pomdp_hier.planning.terminal import where_to_decide
from pomdp_hier.pomdp import POMDP, Belief

__all__ = ["VectorPolicy"]


@dataclass(frozen=True, eq=False)
class VectorPolicy:
    """A policy of alpha vectors, over the states and actions of a problem in their order.

    Attributes:
        vectors: ``[K, S]``; -inf where the vector is not for the state.
        actions: ``[K]``, the position of each vector's action.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> policy = VectorPolicy(np.array([[-1.0, -1.0], [-100.0, 10.0]]), np.array([0, 1]))
        >>> policy.decide(tiger()).action, policy.decide(tiger(), {"tiger-right": 1}).action
        ('listen', 'open-left')
    """

    vectors: Floats = field(repr=False)
    actions: Ints = field(repr=False)

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or self.actions.shape != (len(self.vectors),) or not len(self.vectors):
            raise ModelError(
                f"vectors: got shape {self.vectors.shape} with {len(self.actions)} actions; expected [K, S] with K "
                "actions"
            )

    def __repr__(self) -> str:
        return f"VectorPolicy({len(self.vectors)} vectors, {self.vectors.shape[1]} states)"

    def value(self, problem: POMDP, belief: Any = None) -> float:
        """Return ``max_k sum_s b(s) alpha_k(s)`` over the vectors that are legal under the belief."""
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
                f"the problem's {compiled.n_states} states and {compiled.n_actions} actions"
            )
        weights = compiled.vector(belief)
        support = np.flatnonzero((weights > 0) & ~compiled.terminal)
        allowed = np.isin(self.actions, [compiled.action_index[a] for a in legal])
        scores = np.where(allowed, self.vectors[:, support] @ weights[support], -np.inf)
        best = int(np.argmax(scores))
        if not np.isfinite(scores[best]):
            raise ModelError(f"vectors: got {len(scores)}; expected one with a legal action at this belief")
        return Decision(compiled.actions[self.actions[best]], value=float(scores[best]))
