import re

import numpy as np
import pytest

from pomdp_hier import Hierarchy, errors, hqs_score
from pomdp_hier._text import brief, listed
from pomdp_hier.analysis import delta_sweep
from pomdp_hier.measures import cophenetic_correlation
from pomdp_hier.planning import AlphaVectorPolicy, FiniteStateController
from pomdp_hier.problems import tiger
from pomdp_hier.report import draw_alpha_vectors, draw_icicle, draw_value_density
from tests.source_text import read, sources


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


class Mute:
    def __repr__(self):
        raise RuntimeError("no words")


LONG = {
    "list": list(range(10**6)),
    "text": "x" * 10**6,
    "deep": nested(10**5),
    "integer": 10**10_000,
    "dict": dict.fromkeys(range(99), "y" * 99),
    "mute": Mute(),
}


@pytest.mark.parametrize("kind", LONG)
def test_no_value_takes_more_than_a_few_characters(kind):
    value = LONG[kind]
    assert 0 < len(brief(value)) <= 60
    assert brief(value, 30) == brief(value, 30)[:30]


def test_a_short_value_is_shown_whole():
    for value in ("tiger-left", (0, 1, (2, 3)), {"a": [1.5, None]}, frozenset({1}), True):
        assert brief(value) == repr(value)


def test_a_value_of_several_lines_is_shown_on_one():
    assert brief(np.eye(2)) == "array([[1., 0.], [0., 1.]])"


ROWS, TREE = [[1.0, 0.0], [1.0, 0.2], [0.0, 1.0]], Hierarchy.from_children([[0, 1], [3, 2]], 3)
MERGES = [[0, 1, 1.0, 2], [3, 2, 2.0, 3]]
# Where numbers are read, and such numbers.
NUMBERS = {
    "sample_weight": (lambda given: hqs_score(ROWS, TREE, sample_weight=given, delta=0.1), [1, 2, 3]),
    "heights": (lambda given: cophenetic_correlation(ROWS, TREE, heights=given), [1, 2]),
    "deltas": (lambda given: delta_sweep(ROWS, TREE, deltas=given), [0.1, 0.2]),
    "similarity": (lambda given: hqs_score(ROWS, TREE, similarity=lambda x, c: given[: len(x)], delta=0.1), [1, 2, 3]),
    "linkage": (Hierarchy.from_linkage, MERGES),
    "belief": (tiger().compiled.belief, [0, 1]),
    "vectors": (lambda given: AlphaVectorPolicy(given, [0]), [[1, 2]]),
    "actions": (lambda given: FiniteStateController(tiger(), given, [[0, 0]]), [0]),
    "drawn vectors": (draw_alpha_vectors, [[1, 2]]),
    "node_values": (lambda given: draw_icicle(TREE, given), [1] * TREE.n_nodes),
    "values": (draw_value_density, [0.5, 0.7]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_text_is_not_taken_for_numbers(name):
    use, numbers = NUMBERS[name]
    for text in (np.array(numbers).astype(str), np.array(numbers).astype(str).astype(object)):
        for given in (text, text.tolist()):
            with pytest.raises(errors.PomdpHierError, match=f"{name.split()[-1]}|controller: got .*'"):
                use(given)
    use(numbers)


def test_a_list_says_how_many_there_are():
    assert listed("abcdef", limit=2) == "'a', 'b', ... (6 in all)"
    assert listed(iter(range(10**9)), count=10**9, limit=1) == "0, ... (1,000,000,000 in all)"
    assert listed([1, 2]) == "1, 2"


def test_what_rounds_to_zero_has_no_minus_sign():
    assert f"{-0.00004:z.4f} {-0.00004:+z.4f} {-0.00004:>+z9.4f}" == "0.0000 +0.0000   +0.0000"
    signed = [f"{source.path}:{line}" for source in sources() for line, spec in source.rounded if "z" not in spec]
    assert not signed, f"write z after the sign, as in :+z.4f, for a rounded number has no negative zero: {signed}"


def test_values_in_messages_are_in_brief():
    assert read("f'{a!r}'").shown_whole == [1]
    whole = [f"{source.path}:{line}" for source in sources() for line in source.shown_whole]
    assert not whole, f"write brief(value) for value!r: {whole}"


STOP = r"(\.( ?\{\})?|, as \{\}|pip install '.*')$|^(\w+: |\{\}: )?\{\}$"  # or a command to copy, or another message
PATTERN = (
    r".*(: got |\{\}).*(; expected |; \{\}|, which )",
    r".*Install it: ",  # an extra that is not installed has no wrong value
    r"(\w+: )?\{\}(: \{\}|:\{\}: \{\})?\.?$",  # another error's message, with its file or argument
    r"\{\} Note: ",
    r"--\{\} has no effect \{\}\. Leave it out\.",  # an option without effect has no wrong value
    r"\{\}\{\}",  # where and what is wrong are variables
    # The reasons beside the rows of a file of edits, shown as "row: reason".
    r"\{\} (is another node|is below|are called|was not made)|no \{\} is given|no node is called",
)


def unlike(pattern, ending):
    """The errors, or warnings, of the package whose messages have another form."""
    return [
        f"{source.path}:{line}: {text}"
        for source in sources()
        for line, name, text in source.errors
        if name.endswith(ending) and (hasattr(errors, name) or name == "KeyError") and not re.search(pattern, text)
    ]


@pytest.mark.parametrize("ending", ["Error", "Warning"])
def test_messages_end_in_a_full_stop(ending):
    assert read("ParameterError(f'{a}: b', 'c.' if d else e)").errors == [
        (1, "ParameterError", "{}: bc."),
        (1, "ParameterError", "{}: b{}"),
    ]
    assert not unlike(STOP, ending)


def test_errors_have_a_place_a_value_and_what_is_expected():
    assert not unlike(f"^({'|'.join(PATTERN)})", "Error")
