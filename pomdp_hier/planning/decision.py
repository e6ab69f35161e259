"""Decision and Policy: what every planner returns, and what it is asked."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from pomdp_hier.pomdp import POMDP, Belief
from pomdp_hier.pomdp.numeric import Number

__all__ = ["Decision", "Policy"]


@dataclass(frozen=True)
class Decision:
    """What a policy decides under one belief.

    Attributes:
        action: The action to take.
        value: What the policy believes the rest of the run to be worth, in the problem's reward unit; ``None`` when it
            does not estimate one.
        q_values: The same for each legal action that was evaluated.
        ties: Every action whose value equals the best, in the problem's order; the action is among them.
        stats: What the planner counted (nodes, simulations, ...), under the planner's own names.

    Example:
        >>> Decision("listen", value=-1.0, q_values={"listen": -1.0}).ties
        ('listen',)
    """

    action: Any
    value: Number | None = None
    q_values: Mapping[Any, Number] = field(default_factory=dict)
    ties: tuple[Any, ...] = ()
    stats: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.ties:
            object.__setattr__(self, "ties", (self.action,))


@runtime_checkable
class Policy(Protocol):
    """Anything that decides: one method, from a problem and a belief to a `Decision`.

    ``belief`` defaults to the problem's initial belief; ``observation`` is the last one made (``None`` at the start),
    which problems whose legal actions depend on it pass on to `POMDP.actions`.

    Example:
        >>> class Stubborn:
        ...     def decide(self, problem, belief=None, *, observation=None):
        ...         return Decision(problem.actions(belief, observation)[-1])
        >>> from pomdp_hier.problems import tiger
        >>> isinstance(Stubborn(), Policy), Stubborn().decide(tiger()).action
        (True, 'open-right')
    """

    def decide(self, problem: POMDP, belief: Belief | None = None, *, observation: Hashable = None) -> Decision:
        """Return the decision under the belief."""
        ...
