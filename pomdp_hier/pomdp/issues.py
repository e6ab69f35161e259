"""Issues of a model: their codes, locations and list."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pomdp_hier._text import brief
from pomdp_hier.pomdp.models import MODEL_ERRORS

FAILED = object()  # the result of a model that raised an error


class Finding(str):
    """A finding as text; any other value of an issue is a model's, and is shown by its ``repr``."""


@dataclass(frozen=True)
class ModelIssue:
    """One error of a problem.

    Attributes:
        code: The kind of the error, from the table below.
        location: The model and its arguments.
        value: The wrong sum, number or state, or the message of an error.
        remedy: What was expected, and what to do.

    The codes:

    | code | error |
    |---|---|
    | ``row-sum`` | The probabilities of a row or of the initial belief do not sum to 1. |
    | ``invalid-probability`` | A probability is negative, NaN or not a number. |
    | ``invalid-distribution`` | A model returns something other than a distribution. |
    | ``not-in-space`` | A state, action or observation is not listed, or a terminal state cannot be reached. |
    | ``not-hashable`` | A value cannot be hashed. |
    | ``inconsistent-equality`` | Equality and hash of a state contradict each other, or change from call to call. |
    | ``inconsistent-probability`` | ``probability`` contradicts ``distribution``. |
    | ``inconsistent-samples`` | ``sample`` contradicts ``distribution``. |
    | ``inconsistent-legal-actions`` | States that one history leaves possible have different legal actions. |
    | ``no-legal-action`` | A nonterminal state has no legal action. |
    | ``terminal-not-absorbing`` | A model leaves a terminal state. |
    | ``terminal-reward`` | A terminal state has a reward other than 0. |
    | ``possible-terminal`` | A state that no action leaves keeps its reward, and is not listed as terminal. |
    | ``reward-not-finite`` | A reward is infinite, NaN or not a number. |
    | ``model-error`` | A model raises an error. |
    | ``too-many-states`` | More than ``max_states`` states are reachable. |

    Example:
        >>> print(ModelIssue("row-sum", "transition from 'a' under 'go'", 0.9, "expected 1. Divide it by its sum."))
        row-sum: transition from 'a' under 'go': got 0.9; expected 1. Divide it by its sum.
    """

    code: str
    location: str
    value: Any
    remedy: str

    def __str__(self) -> str:
        value = self.value if isinstance(self.value, Finding) else brief(self.value, 120)
        return f"{self.code}: {self.location}: got {value}; {self.remedy}"


class Location:
    """A model and its arguments, formatted only for an issue."""

    __slots__ = ("_form", "_values")

    def __init__(self, form: str, *values: Any) -> None:
        self._form, self._values = form, values

    def __str__(self) -> str:
        return self._form.format(*map(brief, self._values))


class IssueList:
    """The issues found so far, and calls of models whose errors become issues."""

    def __init__(self) -> None:
        self.issues: list[ModelIssue] = []

    def add(self, code: str, location: Location | str, value: Any, remedy: str) -> None:
        """Add an issue, unless one of the last 50 has its code and location."""
        issue = ModelIssue(code, str(location), value, remedy)
        if issue.location not in {other.location for other in self.issues[-50:] if other.code == code}:
            self.issues.append(issue)

    def ask(self, location: Location | str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the function's result; after an error add an issue and return ``FAILED``."""
        try:
            return function(*arguments)
        except MODEL_ERRORS as error:
            message = Finding(f"{type(error).__name__}: {error}")
            if "hashable" in str(error):
                self.add(
                    "not-hashable",
                    location,
                    message,
                    "expected values that can be hashed. Use strings, tuples or frozen dataclasses.",
                )
            else:
                self.add("model-error", location, message, "expected a result for everything that can be reached.")
            return FAILED
