"""Where ties are decided: whether to go on when going on and searching are worth exactly the same."""

from typing import Literal, TypeAlias

from pomdp_hier._arguments import is_one_of
from pomdp_hier._arrays import Bools, Floats
from pomdp_hier._messages import brief
from pomdp_hier.errors import ParameterError

__all__ = ["Tie", "check_tie", "descends"]

Tie: TypeAlias = Literal["descend", "search"]


def descends(margin: Floats, tie: Tie) -> Bools:
    """Return whether to go on, where that is worth so much more than stopping ``[n]``; 0 is a tie.

    Rules compare one way to go on with searching here; a clairvoyant one the best place so far with the next.

    Example:
        >>> import numpy as np
        >>> descends(np.array([-0.1, 0.0, 0.1]), "descend"), descends(np.array([-0.1, 0.0, 0.1]), "search")
        (array([False,  True,  True]), array([False, False,  True]))
    """
    return margin >= 0 if tie == "descend" else margin > 0


def check_tie(tie: str) -> None:
    """Raise unless the tie is a word that is known.

    Raises:
        ParameterError: It is another.
    """
    if not is_one_of(tie, "descend", "search"):
        raise ParameterError(f"tie is {brief(tie)}; expected 'descend' or 'search'")
