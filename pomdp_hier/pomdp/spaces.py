"""State, Action and Observation: pomdp-py's, made safe for frozen dataclasses.

A state, an action or an observation of pomdp_hier may be any hashable value (a string, an integer, a tuple). The
classes here are for those who want fields and names, or who hand their objects to pomdp-py directly::

    @dataclass(frozen=True)
    class Cell(State):
        row: int
        column: int
"""

import pomdp_py


class State(pomdp_py.State):
    """A state of the world, compared by identity until a subclass (a frozen dataclass, say) compares its fields.

    pomdp-py's own ``__ne__`` is ``not __eq__``, which turns the ``NotImplemented`` of a dataclass that meets another
    type into ``False``: two different objects would be neither equal nor unequal.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Cell(State):
        ...     row: int
        >>> Cell(1) == Cell(1), Cell(1) != Cell(2), Cell(1) != "elsewhere"
        (True, True, True)
    """

    __eq__ = object.__eq__
    __ne__ = object.__ne__
    __hash__ = object.__hash__


class Action(pomdp_py.Action):
    """What the agent can do; see `State` for how it compares.

    Example:
        >>> class Wait(Action):
        ...     pass
        >>> wait = Wait()
        >>> wait == wait, wait == Wait()
        (True, False)
    """

    __eq__ = object.__eq__
    __ne__ = object.__ne__
    __hash__ = object.__hash__


class Observation(pomdp_py.Observation):
    """What the agent perceives; see `State` for how it compares.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Beep(Observation):
        ...     loudness: int
        >>> {Beep(3): 0.8, Beep(4): 0.2}[Beep(4)]
        0.2
    """

    __eq__ = object.__eq__
    __ne__ = object.__ne__
    __hash__ = object.__hash__
