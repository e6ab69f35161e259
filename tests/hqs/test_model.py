import pickle
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import sympy

from pomdp_hier import POMDP, BayesUpdater, Belief
from pomdp_hier.errors import ModelError, ParameterError
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.generic import item_guidance, search_environment, search_problem
from pomdp_hier.hqs.model import (
    END,
    AgentTransition,
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
from tests.search_trees import a_path, random_guidance

SHOP = load_amazon12()
ETA = Fraction(3, 4)


def test_the_appendix_has_eight_states_in_its_order():
    problem = three_node(ETA)
    assert " ".join(map(str, problem.states)) == "<c0,1> <c0,0> <c1,1> <c1,0> <c2,1> <c2,0> <end,1> <end,0>"
    assert [str(a) for a in problem.all_actions] == ["search", "descend"]
    assert [str(o) for o in problem.all_observations] == ["c1", "c2", "found", "not found"]
    assert problem.discount == 1
    assert dict(problem.initial_belief) == {SearchState("c0", 1): 1}


def test_the_agents_transition_sums_to_one_in_all_eight_states():
    problem = three_node(ETA)
    for state in problem.states:
        for action in problem.all_actions if state.node == "c0" else [Search()]:
            successors = problem.successors(state, action)
            assert sum(successors.values()) == 1
            assert all(p >= 0 for p in successors.values())


def test_the_agents_transition_word_for_word():
    eta = sympy.Symbol("eta", positive=True)
    problem = three_node(eta)
    on, off = (problem.successors(SearchState("c0", g), Descend()) for g in (1, 0))
    expected = {("c1", 1): eta**2, ("c1", 0): eta * (1 - eta), ("c2", 1): (1 - eta) ** 2, ("c2", 0): eta * (1 - eta)}
    for (node, g), value in expected.items():
        assert sympy.simplify(on[SearchState(node, g)] - value) == 0
    assert off == {SearchState("c1", 0): eta, SearchState("c2", 0): 1 - eta}
    for state in problem.states[:6]:
        assert problem.successors(state, Search()) == {SearchState(END, state.on_path): 1}
    for end in problem.states[6:]:
        assert problem.is_terminal(end)


def test_rewards_and_observations_word_for_word():
    problem = three_node(ETA, r0=Fraction(1, 10), r1=Fraction(1, 2), r2=Fraction(3, 5))
    assert problem.expected_reward(SearchState("c0", 1), Descend()) == 0
    assert problem.expected_reward(SearchState("c1", 1), Search()) == Fraction(1, 2)
    assert problem.expected_reward(SearchState("c1", 0), Search()) == -1
    assert problem.observation_distribution(SearchState("c2", 0), Descend(), None) == {Node("c2"): 1}
    assert problem.observation_distribution(SearchState(END, 1), Search(), None) == {Found(): 1}
    assert problem.observation_distribution(SearchState(END, 0), Search(), None) == {NotFound(): 1}


def test_the_default_rewards_are_those_of_two_items():
    problem = three_node(0.5)
    values = [problem.expected_reward(SearchState(c, 1), Search()) for c in ("c0", "c1", "c2")]
    assert values == pytest.approx([0, 1 - (np.exp(0.5) - 1) / (np.e - 1), 1 - (np.exp(0.5) - 1) / (np.e - 1)])


def test_the_probability_of_seeing_a_child_is_its_guidance_whatever_the_belief():
    eta, b = sympy.symbols("eta b", positive=True)
    problem = three_node(eta, belief=b)
    seen = problem.observation_probabilities(problem.initial_belief, Descend())
    assert sympy.simplify(seen[Node("c1")] - eta) == 0
    assert sympy.simplify(seen[Node("c2")] - (1 - eta)) == 0


def test_the_appendixs_q_values_come_out_identical():
    eta, b, r0, r1, r2 = sympy.symbols("eta b r0 r1 r2", positive=True)
    problem = three_node(eta, r0=r0, r1=r1, r2=r2, belief=b)
    start = problem.initial_belief
    assert sympy.simplify(problem.reward(start, Search()) - (b * (1 + r0) - 1)) == 0
    descend = problem.reward(start, Descend()) + sum(
        evidence * problem.reward(posterior, Search())
        for _, evidence, posterior in BayesUpdater(problem).branches(start, Descend())
    )
    expected = b * (eta**2 * (r1 + 1) + (1 - eta) ** 2 * (r2 + 1)) - 1
    assert sympy.simplify(descend - expected) == 0


def test_legal_actions_by_state():
    problem = three_node(ETA)
    assert problem.actions() == (Search(), Descend())
    assert problem.actions(Belief.certain(SearchState("c1", 1))) == (Search(),)
    assert problem.actions(Belief.certain(SearchState(END, 0))) == ()


def test_a_closed_node_is_only_searched():
    problem = search_problem_from_guidance({0: {1: 1}, 1: {2: 1}}, {0: 0, 1: 0, 2: 1}, closed=[1])
    assert problem.actions(Belief.certain(SearchState(0, 1))) == (Search(), Descend())
    assert problem.actions(Belief.certain(SearchState(1, 1))) == (Search(),)


@pytest.mark.parametrize("seed", few(8, range(30)))
def test_agent_and_environment_of_random_trees(seed):
    rng = np.random.default_rng(seed)
    eta, rewards = random_guidance(rng, int(rng.integers(2, 20)), exact=True)
    path = a_path(rng, eta)
    agent = search_problem_from_guidance(eta, rewards)
    world = search_environment_from_guidance(eta, rewards, path)
    assert len(agent.states) == len(world.states) == 2 * len(rewards) + 2
    for problem in (agent, world):
        for state in problem.states:
            for action in () if problem.is_terminal(state) else problem.actions(Belief.certain(state)):
                assert sum(problem.successors(state, action).values()) == 1
    state = SearchState(0, 1)
    for node, child in pairwise(path):
        assert world.successors(state, Descend())[SearchState(child, 1)] == eta[node][child]
        assert sum(p for s, p in world.successors(state, Descend()).items() if s.on_path) == eta[node][child]
        state = SearchState(child, 1)
    assert world.expected_reward(state, Search()) == rewards[path[-1]]
    assert agent.compiled.n_states == len(agent.states)


def test_the_papers_walk_through():
    tree = SHOP.hierarchies["A"]
    options = {"similarity": "precomputed", "delta": 0.005}
    c9, c8, c7 = (
        tree.node(label) if tree.labels else n for label, n in zip(("c9", "c8", "c7"), (21, 20, 19), strict=True)
    )
    eta0 = item_guidance(SHOP.similarity, tree, 0, **options)
    eta7 = item_guidance(SHOP.similarity, tree, 7, **options)
    assert round(eta0[c9][c7], 4) == 0.9987
    assert round(eta7[c9][c8], 4) == 0.1978


def test_search_problems_have_the_engines_guidance_and_rewards():
    tree = SHOP.hierarchies["E"]
    problem = search_problem(SHOP.similarity, tree, 1, similarity="precomputed", delta=0.005)
    world = search_environment(SHOP.similarity, tree, 1, similarity="precomputed", delta=0.005)
    assert isinstance(problem.transition, AgentTransition)
    path = tree.path(1).tolist()
    assert [s.node for s in problem.initial_belief] == path[:1]
    assert problem.transition.eta == item_guidance(SHOP.similarity, tree, 1, similarity="precomputed", delta=0.005)
    leaf = SearchState(path[-1], 1)
    size = int(tree.sizes[path[-1]])
    assert world.expected_reward(leaf, Search()) == pytest.approx(1 - (np.exp(size / 12) - 1) / (np.e - 1), abs=1e-15)


def test_the_items_own_singleton_can_be_closed():
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4, singletons=True)
    X = np.eye(4)
    for build in (search_problem, search_environment):
        closed = build(X, tree, 0, enter_own_singleton=False)
        assert closed.actions(Belief.certain(SearchState(4, 1))) == (Search(),)
        assert closed.actions(Belief.certain(SearchState(5, 1))) == (Search(), Descend())  # other items' are open
        assert build(X, tree, 0).actions(Belief.certain(SearchState(4, 1))) == (Search(), Descend())


def test_an_item_right_below_the_root_closes_the_root():
    tree = Hierarchy.from_children([[0, 1, 2]], 3, singletons=True)
    assert search_problem(np.eye(3), tree, 0, enter_own_singleton=False).actions() == (Search(),)
    assert search_problem(np.eye(3), tree, 0).actions() == (Search(), Descend())
    alone = Hierarchy.from_children([], 1, singletons=True)
    assert search_problem(np.ones((1, 2)), alone, 0, enter_own_singleton=False).actions() == (Search(),)


@pytest.mark.parametrize(("n_items", "children"), [(3, [[0, 1, 2]]), (1, [[0]])])
def test_a_tree_of_one_leaf_cluster_is_searched_at_once(n_items, children):
    tree = Hierarchy.from_children(children, n_items)
    X = np.ones((n_items, 2))
    problem = search_problem(X, tree, 0)
    assert problem.actions() == (Search(),)
    assert problem.reward(problem.initial_belief, Search()) == 0
    assert search_environment(X, tree, 0).actions() == (Search(),)


def test_guidance_that_underflows_leaves_an_impossible_child():
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
    problem = search_problem(np.eye(4), tree, 0, similarity="negative_euclidean", delta=1e-9)
    assert len(problem.observations(problem.initial_belief, Descend())) == 1
    assert problem.compiled.n_states == 8


@pytest.mark.parametrize(
    ("eta", "rewards", "message"),
    [
        ({0: {1: 0.5, 2: 0.4}}, {0: 0, 1: 0, 2: 0}, r"eta: got the sum 0\.9 at 0"),
        ({0: {1: 1.5, 2: -0.5}}, {0: 0, 1: 0, 2: 0}, r"eta: got -0\.5 for 0 to 2"),
        ({0: {1: 1}, 2: {1: 1}}, {0: 0, 1: 0, 2: 0}, "eta: got 1 below 0 and 2"),
        ({0: {1: 1}, 2: {3: 1}}, dict.fromkeys(range(4), 0), "eta: got 2 nodes"),
        ({0: {1: 1}, 1: {0: 1}}, {0: 0, 1: 0}, "eta: got 0 nodes"),
        ({0: {1: 1}, 2: {3: 1}, 3: {2: 1}}, dict.fromkeys(range(4), 0), "unreachable"),
        ({0: {1: 1}}, {0: 0}, "none for node 1"),
        ({0: {"end": 1}}, {0: 0, "end": 0}, "eta: got a node named 'end'"),
        ({0: {}}, {0: 0}, "eta: got the sum 0 at 0"),
    ],
)
def test_what_is_no_tree_with_guidance_is_refused(eta, rewards, message):
    with pytest.raises(ModelError, match=message):
        search_problem_from_guidance(eta, rewards)


@pytest.mark.parametrize("path", [[], [1], [0], [0, 3], [0, 1, 2]])
def test_a_path_that_is_none_is_refused(path):
    with pytest.raises(ModelError, match=r"path|root"):
        search_environment_from_guidance({0: {1: 0.5, 2: 0.5}}, dict.fromkeys(range(3), 0), path)


def test_settings_are_checked():
    tree = SHOP.hierarchies["A"]
    for wrong in (12, True):
        with pytest.raises(ParameterError, match=f"item: got {wrong}; expected 0 to 11"):
            search_problem(SHOP.similarity, tree, wrong, similarity="precomputed")
    with pytest.raises(ParameterError, match="delta"):
        search_problem(SHOP.similarity, tree, 0, similarity="precomputed", delta=0)


def test_everything_is_pickled():
    problem = three_node(ETA)
    copy = pickle.loads(pickle.dumps(problem))
    assert isinstance(copy, POMDP)
    assert copy.states == problem.states
    assert copy.actions() == (Search(), Descend())
    assert copy.successors(copy.states[0], Descend()) == problem.successors(problem.states[0], Descend())


@pytest.mark.parametrize("eta", [75, -0.5, "3/4", [0.75, 0.25], None])
def test_an_eta_that_is_no_probability_is_refused(eta):
    with pytest.raises(ModelError, match=r"eta: got .*; expected a number in \[0, 1\]"):
        three_node(eta)


def test_a_label_in_the_place_of_an_item_and_features_in_that_of_the_tree_are_refused():
    tree = SHOP.hierarchies["A"]
    with pytest.raises(ParameterError, match=r"item: got 'boots'.*11"):
        search_problem(SHOP.similarity, tree, "boots", similarity="precomputed")
    with pytest.raises(ParameterError, match="X: got a Hierarchy"):
        search_problem(tree, SHOP.similarity, 0)
