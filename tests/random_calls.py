"""What machines of random calls share: calls that end in answers or in our own errors, and how they are run."""

import warnings

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from pomdp_hier.errors import PomdpHierError, PomdpHierWarning

CALLS = {"made": 0, "answered": 0}
MOSTLY_VALID = st.one_of(st.integers(0, 2), st.integers(0, 2), st.integers(0, 11))  # the valid ones stand first


class RandomCalls(RuleBasedStateMachine):
    """Calls, one after the other; what earlier ones returned is handed to later ones, and to the wrong ones too."""

    def call(self, function, *arguments, **keywords):
        """The answer, None for an error of ours; anything else that is raised fails the test."""
        CALLS["made"] += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PomdpHierWarning)
            try:
                answer = function(*arguments, **keywords)
            except PomdpHierError:
                return None
        CALLS["answered"] += 1
        return answer


def run(machine, examples, steps, **options):
    """Run so many sequences of so many calls."""
    CALLS.update(made=0, answered=0)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
            **options,
        ),
    )
