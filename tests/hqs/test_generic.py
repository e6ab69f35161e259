"""The keel: planning in each item's POMDP, and the engine over all items, are two programs for the same numbers."""

import warnings
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pomdp_hier import BayesUpdater
from pomdp_hier._engines.task import LookAhead
from pomdp_hier.beliefs import TabularUpdater
from pomdp_hier.errors import DataWarning, ParameterError
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.generic import item_guidance, search_environment, search_problem, search_value
from pomdp_hier.hqs.guidance import node_rewards
from pomdp_hier.hqs.model import ClosedFormUpdater, search_environment_from_guidance, search_problem_from_guidance
from pomdp_hier.hqs.paper import PAPER_TABLE, PAPER_TEXT, load_amazon12
from pomdp_hier.hqs.policies import SEARCH, AlgorithmOne, FixedLevel, PlannedSearch, paper_readings, true_path
from pomdp_hier.hqs.score import evaluate, hqs_score
from pomdp_hier.planning import POUCT, RTBSS, ImmediateValue, RandomPolicy
from pomdp_hier.simulation import policy_value
from pomdp_hier.simulation.monte_carlo import simulate_in_pomdp_py
from tests.extras import few
from tests.scorer_oracle import Oracle, features, trees
from tests.scorer_oracle import cosine as oracle_cosine

SHOP = load_amazon12()
GIVEN = {"similarity": "precomputed"}
on_pomdps = partial(evaluate, engine="generic")
BARE_RTBSS = RTBSS(1, leaf_value=ImmediateValue(SEARCH), ties="all", updater=None)


def close(a, b, tolerance=1e-12):
    return float(np.abs(np.asarray(a, dtype=float) - np.asarray(b, dtype=float)).max()) <= tolerance


def same(one, other):
    return (
        close(one.values, other.values)
        and np.array_equal(one.stop_nodes, other.stop_nodes)
        and np.array_equal(one.stop_levels, other.stop_levels)
        and close(one.path_probabilities, other.path_probabilities)
        and close(one.rewards, other.rewards)
    )


# --- the keel ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", few(2, "EABCD"))
@pytest.mark.parametrize("preset", [PAPER_TABLE, PAPER_TEXT])
def test_rtbss_over_bayes_equals_algorithm_one_and_the_engine(name, preset):
    tree, tie = SHOP.hierarchies[name], preset["tie"]
    engine = evaluate(SHOP.similarity, tree, **GIVEN, **preset)
    rtbss = on_pomdps(
        SHOP.similarity, tree, policy=PlannedSearch(BARE_RTBSS, tie), updater=BayesUpdater, **GIVEN, **preset
    )
    letter = on_pomdps(SHOP.similarity, tree, policy=AlgorithmOne(tie), **GIVEN, **preset)
    assert same(rtbss, engine)
    assert same(letter, engine)


@pytest.mark.parametrize("policy", ["one-step", "optimal", "search-root", "descend", "hindsight", LookAhead(2)])
@pytest.mark.parametrize("name", few(1, "EAB"))
def test_every_rule_of_the_engine_has_its_policy(name, policy):
    tree = SHOP.hierarchies[name]
    options = {"policy": policy, **GIVEN, **PAPER_TABLE}
    assert same(on_pomdps(SHOP.similarity, tree, **options), evaluate(SHOP.similarity, tree, **options))


@given(st.data())
def test_on_random_trees_the_two_routes_agree(data):
    tree = data.draw(trees(max_items=9))
    X = data.draw(features(tree.n_items))
    options = {
        "delta": data.draw(st.sampled_from([0.05, 0.2, 1.0])),
        "nu": data.draw(st.sampled_from([1.0, 1.5])),
        "tie": data.draw(st.sampled_from(["descend", "search"])),
        "enter_own_singleton": data.draw(st.booleans()),
    }
    depth = data.draw(st.sampled_from([1, 1, 2, None]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # rows of zeros are another test's
        engine = evaluate(X, tree, policy=LookAhead(depth, options["tie"]), **options)
        generic = on_pomdps(X, tree, policy=LookAhead(depth, options["tie"]), **options)
    oracle = Oracle(tree, oracle_cosine(X), depth=depth, **options)
    for item in range(tree.n_items):
        margin = oracle.score(item).margin
        if margin is None or margin > 1e-12 * max(1.0, 1 / max(engine.path_probabilities[item], 1e-300)):
            assert abs(generic.values[item] - engine.values[item]) <= 1e-12
            assert generic.stop_nodes[item] == engine.stop_nodes[item]


def exact_models(X, tree, item, **options):
    """The two models of one item in fractions, with the guidance of the floats."""
    eta = {
        node: {child: Fraction(p) / sum(map(Fraction, row.values())) for child, p in row.items()}
        for node, row in item_guidance(X, tree, item, **options).items()
    }
    rewards = {node: Fraction(float(r)) for node, r in enumerate(node_rewards(tree).reward)}
    return (
        search_problem_from_guidance(eta, rewards),
        search_environment_from_guidance(eta, rewards, tree.path(item).tolist()),
    )


@pytest.mark.parametrize("seed", few(1, range(3)))
def test_in_fractions_the_generic_route_stops_where_the_engine_does_however_small_the_belief(seed):
    rng = np.random.default_rng(seed)
    n_items = 16
    children, open_ = [], list(range(n_items))
    while len(open_) > 1:  # one item after another: beliefs shrink along a long path
        pair = [open_.pop(), open_.pop()]
        children.append(pair)
        open_.append(n_items + len(children) - 1)
    tree = Hierarchy.from_children(children, n_items, singletons=True)
    X = rng.normal(size=(n_items, 5))
    engine = evaluate(X, tree, delta=0.02)
    smallest = 1.0
    for item in range(n_items):
        problem, environment = exact_models(X, tree, item, delta=0.02)
        found = search_value(PlannedSearch(BARE_RTBSS), problem, environment)
        assert found.stop_node == engine.stop_nodes[item]
        assert abs(float(found.value) - engine.values[item]) <= 1e-12
        smallest = min(smallest, float(found.path_probability))
    assert smallest < 1e-12


# --- the paper's three readings ----------------------------------------------------------------------------------

READINGS = {
    "expand": {"A": 0.5715, "B": -0.3621, "C": -0.3097, "D": -0.8477, "E": 0.3573},
    "max-0": {"A": 0.5607, "B": -0.4798, "C": -0.3097, "D": -0.8477, "E": 0.3266},
    "search": {"A": 0.5715, "B": -0.2802, "C": -0.3097, "D": -0.8477, "E": 0.3266},
}


@pytest.mark.parametrize("reading", few(2, ["max-0", "search", "expand"]))
def test_the_three_readings_of_two_look_aheads(reading):
    policy = paper_readings()[reading]
    for name, score in READINGS[reading].items():
        result = on_pomdps(SHOP.similarity, SHOP.hierarchies[name], policy=policy, **GIVEN, **PAPER_TABLE)
        assert round(result.score, 4) == score


# --- the oracle value --------------------------------------------------------------------------------------------


def test_enumeration_gives_the_closed_formula():
    worst = 0.0
    for tree in SHOP.hierarchies.values():
        for item in range(12):
            models = [
                build(SHOP.similarity, tree, item, delta=0.02, **GIVEN)
                for build in (search_problem, search_environment)
            ]
            found = search_value(AlgorithmOne(), *models, follow_lost=True)
            eta = dict(true_path(models[1]))[found.stop_node]
            closed = (node_rewards(tree).reward[found.stop_node] + 1) * eta - 1
            worst = max(worst, abs(float(found.value) - closed))
            short = search_value(AlgorithmOne(), *models)
            assert abs(float(found.value) - float(short.value)) <= 1e-14
            assert (found.stop_node, found.path_probability) == (short.stop_node, short.path_probability)
            assert len(short.evaluation.visits) <= len(found.evaluation.visits)
    assert worst <= 1e-14


def test_in_fractions_enumeration_is_the_formula_exactly():
    for item in range(12):
        problem, environment = exact_models(SHOP.similarity, SHOP.hierarchies["A"], item, delta=0.02, **GIVEN)
        found = search_value(AlgorithmOne(), problem, environment, follow_lost=True)
        eta = dict(true_path(environment))[found.stop_node]
        assert found.value == (found.reward + 1) * eta - 1
        assert found.value == search_value(AlgorithmOne(), problem, environment).value


@pytest.mark.slow
def test_a_simulation_in_pomdp_pys_loop_covers_the_oracle_value():
    tree = SHOP.hierarchies["A"]
    models = [build(SHOP.similarity, tree, 7, delta=0.005, **GIVEN) for build in (search_problem, search_environment)]
    exact = float(policy_value(AlgorithmOne(), *models))
    assert round(exact, 4) == -0.6791
    low, high = simulate_in_pomdp_py(AlgorithmOne(), *models, n_episodes=10_000, seed=1).interval
    assert low < exact < high
    assert high - low < 0.03


# --- any updater, any policy -------------------------------------------------------------------------------------


@pytest.mark.parametrize("updater", [TabularUpdater, ClosedFormUpdater])
def test_any_updater_serves(updater):
    tree = SHOP.hierarchies["E"]
    engine = evaluate(SHOP.similarity, tree, **GIVEN, **PAPER_TABLE)
    assert same(on_pomdps(SHOP.similarity, tree, updater=updater, **GIVEN, **PAPER_TABLE), engine)


def test_a_policy_that_draws_is_weighed():
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
    result = on_pomdps(np.eye(4), tree, policy=RandomPolicy(0), delta=0.5)
    # Stops at the root with probability 1/2 (reward 0), else at the own cluster, reached with probability eta.
    r = node_rewards(tree).reward[4]
    for item in range(4):
        models = [build(np.eye(4), tree, item, delta=0.5) for build in (search_problem, search_environment)]
        eta = dict(true_path(models[1]))[tree.path(item)[1]]
        assert result.values[item] == pytest.approx(0.5 * 0 + 0.5 * ((r + 1) * eta - 1))
        assert result.path_probabilities[item] == pytest.approx(0.5 + 0.5 * eta)
        assert result.stop_nodes[item] == tree.root  # where it is found most often, for eta is less than 1
        assert result.values[item] == pytest.approx((result.rewards[item] + 1) * result.path_probabilities[item] - 1)


@pytest.mark.slow
def test_pouct_earns_what_the_model_it_plans_with_lets_it_see():
    from pomdp_hier.hqs.policies import PlansInEnvironment

    tree = SHOP.hierarchies["B"]
    scores = {
        name: on_pomdps(SHOP.similarity, tree, policy=policy, **GIVEN, **PAPER_TABLE).score
        for name, policy in {
            "agent": POUCT(depth=6, simulations=400, seed=0),
            "environment": PlansInEnvironment(POUCT(depth=6, simulations=400, seed=0)),
        }.items()
    }
    ceiling = hqs_score(SHOP.similarity, tree, policy="hindsight", **GIVEN, **PAPER_TABLE)
    assert scores["agent"] < 0
    assert abs(scores["environment"] - ceiling) < 0.02


def test_the_public_functions_take_the_generic_route():
    tree = SHOP.hierarchies["A"]
    by_name = evaluate(SHOP.similarity, tree, engine="generic", **GIVEN, **PAPER_TABLE)
    assert by_name.config["engine"] == "generic"
    assert same(by_name, evaluate(SHOP.similarity, tree, **GIVEN, **PAPER_TABLE))
    assert hqs_score(SHOP.similarity, tree, policy=lambda belief: SEARCH, **GIVEN) == 0.0
    own_rule = evaluate(SHOP.similarity, tree, policy=FixedLevel(1), engine="generic", **GIVEN, **PAPER_TABLE)
    assert same(own_rule, evaluate(SHOP.similarity, tree, policy=FixedLevel(1), **GIVEN, **PAPER_TABLE))
    with pytest.raises(ParameterError, match="expected 'generic', as policy"):
        evaluate(SHOP.similarity, tree, policy=lambda belief: SEARCH, engine="numpy", **GIVEN)
    with pytest.raises(ParameterError, match="checkpoint: got 'somewhere'"):
        evaluate(SHOP.similarity, tree, checkpoint="somewhere", **GIVEN)


def test_guidance_that_underflows_is_a_lost_search():
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    tree = Hierarchy.from_children([[0, 3], [2, 1], [4, 5]], 4)
    result = on_pomdps(X, tree, delta=1e-4, policy="descend")
    engine = evaluate(X, tree, delta=1e-4, policy="descend")
    assert result.values.tolist() == engine.values.tolist()
    assert -1.0 in result.values
    assert 0.0 in result.path_probabilities


def test_rows_of_zeros_are_warned_about_once():
    tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
    with pytest.warns(DataWarning, match="zeros") as caught:
        on_pomdps(np.diag([1.0, 0.0, 1.0, 1.0]), tree)
    assert len(caught) == 1
