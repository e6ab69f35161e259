from fractions import Fraction

import numpy as np
import pytest
import sympy

from pomdp_hier import BayesUpdater, Belief, compare_updaters
from pomdp_hier.beliefs import assert_updaters_agree
from pomdp_hier.beliefs.updaters import CompleteUpdater
from pomdp_hier.errors import ImpossibleObservationError, ModelError
from pomdp_hier.hqs.generic import search_problem
from pomdp_hier.hqs.model import (
    ClosedFormUpdater,
    Descend,
    Found,
    Node,
    NotFound,
    Search,
    SearchState,
    search_environment_from_guidance,
    search_problem_from_guidance,
    three_node,
)
from pomdp_hier.hqs.paper import load_amazon12
from tests.extras import few
from tests.search_trees import height, random_guidance

EXACT = three_node(Fraction(3, 4))


def test_on_the_three_node_example_it_is_bayes_exactly():
    agreement = assert_updaters_agree(BayesUpdater(EXACT), ClosedFormUpdater(EXACT), EXACT, depth=3)
    # search; descend to c1 or c2 and search there, found or not
    assert (agreement.n_compared, agreement.n_skipped) == (1 + 2 + 4, 0)
    assert agreement.max_difference == agreement.max_evidence_difference == agreement.max_total_difference == 0


def test_symbolically_too():
    eta, b = sympy.symbols("eta b", positive=True)
    problem = three_node(eta, belief=b)
    assert_updaters_agree(BayesUpdater(problem), ClosedFormUpdater(problem), problem, depth=3)


@pytest.mark.parametrize("seed", few(10, range(40)))
def test_on_random_hierarchies_it_is_bayes_exactly_with_fractions(seed):
    rng = np.random.default_rng(seed)
    eta, rewards = random_guidance(rng, int(rng.integers(2, 25)), exact=True)
    problem = search_problem_from_guidance(eta, rewards)
    agreement = assert_updaters_agree(BayesUpdater(problem), ClosedFormUpdater(problem), problem, depth=height(eta) + 1)
    assert agreement.n_skipped == 0
    assert agreement.max_difference == 0


@pytest.mark.parametrize("seed", few(10, range(40)))
def test_on_random_hierarchies_it_is_bayes_to_rounding_with_floats(seed):
    rng = np.random.default_rng(seed)
    eta, rewards = random_guidance(rng, int(rng.integers(2, 40)), exact=False)
    problem = search_problem_from_guidance(eta, rewards)
    agreement = assert_updaters_agree(
        BayesUpdater(problem), ClosedFormUpdater(problem), problem, depth=height(eta) + 1, tolerance=1e-14
    )
    assert agreement.n_skipped == 0


def wrong(kind):
    def update(belief, action, observation):
        posterior = ClosedFormUpdater(EXACT).update(belief, action, observation)
        if action == Search():
            return posterior
        node = observation.node
        eta = EXACT.transition.eta["c0"][node]
        b = belief[SearchState("c0", 1)]
        if kind == "not renormalised":
            return {SearchState(node, 1): eta * eta * b, SearchState(node, 0): eta * (1 - eta * b)}
        return Belief({SearchState(node, 1): eta**2 * b, SearchState(node, 0): 1 - eta**2 * b})

    return update


@pytest.mark.parametrize(
    ("kind", "difference"), [("not renormalised", Fraction(9, 16)), ("eta squared", Fraction(3, 16))]
)
def test_a_wrong_closed_form_is_caught_and_its_first_history_named(kind, difference):
    agreement = compare_updaters(BayesUpdater(EXACT), wrong(kind), EXACT, depth=3)
    assert not agreement.agrees
    assert agreement.first_history == ((Descend(), Node("c1")),)
    assert agreement.max_difference == float(difference)
    with pytest.raises(AssertionError, match="first history:  descend, c1"):
        assert_updaters_agree(BayesUpdater(EXACT), wrong(kind), EXACT, depth=3)


def test_the_belief_is_the_product_of_the_guidance_along_the_path():
    eta, rewards = random_guidance(np.random.default_rng(4), 30, exact=True)
    problem = search_problem_from_guidance(eta, rewards)
    updater = ClosedFormUpdater(problem)
    assert isinstance(updater, CompleteUpdater)
    belief, node, product = problem.initial_belief, 0, 1
    while node in eta:
        child = max(eta[node], key=eta[node].get)
        assert updater.evidence(belief, Descend(), Node(child)) == eta[node][child]
        belief, product, node = updater.update(belief, Descend(), Node(child)), product * eta[node][child], child
        assert belief[SearchState(node, 1)] == product


def test_predictions_and_branches_are_those_of_bayes():
    for belief in (
        EXACT.initial_belief,
        Belief({SearchState("c0", 1): Fraction(1, 3), SearchState("c0", 0): Fraction(2, 3)}),
    ):
        for action in (Descend(), Search()):
            bayes, closed = BayesUpdater(EXACT), ClosedFormUpdater(EXACT)
            assert closed.predict(belief, action) == bayes.predict(belief, action)
            assert list(closed.branches(belief, action)) == list(bayes.branches(belief, action))


def test_impossible_observations():
    updater, start = ClosedFormUpdater(EXACT), EXACT.initial_belief
    for action, observation in [
        (Descend(), Node("c9")),
        (Descend(), Found()),
        (Search(), NotFound()),
        (Search(), Node("c1")),
    ]:
        assert updater.evidence(start, action, observation) == 0
        with pytest.raises(ImpossibleObservationError):
            updater.update(start, action, observation)


def test_guidance_of_zero_is_impossible_for_bayes_and_belief_zero_in_closed_form():
    problem = three_node(Fraction(1))
    with pytest.raises(ImpossibleObservationError):
        BayesUpdater(problem).update(problem.initial_belief, Descend(), Node("c2"))
    posterior = ClosedFormUpdater(problem).update(problem.initial_belief, Descend(), Node("c2"))
    assert dict(posterior) == {SearchState("c2", 0): 1}
    assert compare_updaters(BayesUpdater(problem), ClosedFormUpdater(problem), problem, depth=3).agrees


def test_it_is_for_the_agents_problem_alone():
    world = search_environment_from_guidance({0: {1: 0.5, 2: 0.5}}, dict.fromkeys(range(3), 0), [0, 1])
    with pytest.raises(ModelError, match="agent's model"):
        ClosedFormUpdater(world)
    with pytest.raises(ModelError, match="expected states of one node"):
        ClosedFormUpdater(EXACT).update(
            Belief({SearchState("c1", 1): 0.5, SearchState("c2", 1): 0.5}), Search(), Found()
        )


@pytest.mark.parametrize("name", "ABCDE")
def test_on_the_papers_hierarchies_it_is_bayes_to_rounding(name):
    shop = load_amazon12()
    tree = shop.hierarchies[name]
    for item in range(12):
        problem = search_problem(shop.similarity, tree, item, similarity="precomputed", delta=0.005)
        agreement = assert_updaters_agree(
            BayesUpdater(problem), ClosedFormUpdater(problem), problem, depth=int(tree.height) + 1, tolerance=1e-14
        )
        assert agreement.n_skipped == 0


@pytest.mark.parametrize("action", ["descend", "search", Descend])
def test_the_name_or_the_class_of_an_action_is_refused(action):
    problem = three_node(Fraction(3, 4))
    for updater in (ClosedFormUpdater(problem), BayesUpdater(problem)):
        with pytest.raises(ModelError, match=r"action: .*Search\(\)"):
            updater.update(problem.initial_belief, action, Node("c1"))


def test_the_nodes_that_can_be_seen_are_listed_where_another_is_claimed():
    problem = three_node(Fraction(3, 4))
    for updater in (ClosedFormUpdater(problem), BayesUpdater(problem)):
        with pytest.raises(ImpossibleObservationError, match=r"expected .*Node\(node='c1'\), Node\(node='c2'\)"):
            updater.update(problem.initial_belief, Descend(), "c1")
    start = dict(problem.initial_belief.items())
    assert ClosedFormUpdater(problem).evidence(start, Descend(), Node("c1")) == Fraction(3, 4)
