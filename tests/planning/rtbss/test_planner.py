"""RTBSS against the golden values, enumeration and alpha vectors, whatever prunes it."""

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest

from pomdp_hier import POMDP, BayesUpdater, Belief
from pomdp_hier.beliefs.updaters import as_updater
from pomdp_hier.errors import ModelError, ParameterError, PlanningError
from pomdp_hier.planning import RTBSS, AndOrTree, ImmediateValue
from pomdp_hier.planning.rtbss.planner import _DEEPEST_RECURSION, _FINEST_MERGING
from pomdp_hier.planning.value_iteration import value_iteration
from tests.exact_oracle import exact_value
from tests.extras import few
from tests.pomdp_models import random_fractions, random_problem, search_tree, three_node, tiger

GOLDEN = [-1, -1.95, 2.3098, 1.795544, 2.763096, 4.428531, 4.584266]
ENGINES = ["plain", "arrays"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("prune", [True, False])
@pytest.mark.parametrize(("depth", "value"), list(enumerate(GOLDEN, start=1)))
def test_tiger(engine, prune, depth, value):
    decision = RTBSS(depth, engine=engine, prune=prune).decide(tiger())
    assert decision.value == pytest.approx(value, abs=5e-7)
    assert decision.action == "listen"
    assert decision.ties == ("listen",)


@pytest.mark.parametrize("seed", few(2, range(4)))
@pytest.mark.parametrize("rewards", ["positive", "negative", "mixed"])
@pytest.mark.parametrize("discount", [0.0, 0.5, 1.0])
def test_pruned_is_unpruned_is_exact(seed, rewards, discount):
    problem = random_problem(
        seed, discount=discount, rewards=rewards, terminal=seed % 2 == 1, ties=seed % 3 == 0, observations=2 + seed % 2
    )
    depth = 3
    exact = exact_value(problem, horizon=depth)
    reference = RTBSS(depth, engine="plain", prune=False).decide(problem)
    assert reference.value == pytest.approx(exact, abs=1e-10)
    for engine in ENGINES:
        for bound in ("fib", "qmdp", "range"):
            for tie in ("first", "all"):
                planner = RTBSS(depth, upper_bound=bound, ties=tie, engine=engine, tie_tolerance=1e-9)
                decision = planner.decide(problem)
                assert decision.value == pytest.approx(exact, abs=1e-10)
                best = max(reference.q_values.values())
                assert decision.ties == tuple(a for a, q in reference.q_values.items() if q >= best - 1e-9)
                for action, q in decision.q_values.items():
                    if decision.stats["status"][action] == "exact":
                        assert q == pytest.approx(reference.q_values[action], abs=1e-10)
                    else:
                        assert best > q >= reference.q_values[action] - 1e-10


@pytest.mark.parametrize("seed", range(3))
def test_alpha_vectors_agree(seed):
    rewards = ["positive", "negative", "mixed"][seed % 3]
    problem = random_problem(seed, discount=0.9, rewards=rewards, terminal=seed % 2 == 0)
    solution = value_iteration(problem, 4)
    for depth in range(1, 5):
        for belief in _beliefs(problem, seed):
            value = solution.value(belief, to_go=depth)
            assert RTBSS(depth).decide(problem, belief).value == pytest.approx(value, abs=1e-8)


def _beliefs(problem, seed):
    rng = np.random.default_rng(seed)
    for _ in range(3):
        weights = rng.random(len(problem.states)) + 1e-9
        yield Belief.normalized(dict(zip(problem.states, weights.tolist(), strict=True)))


@pytest.mark.parametrize("seed", few(1, range(3)))
@pytest.mark.parametrize("leaf", ["zero", "immediate", ImmediateValue(1)])
@pytest.mark.parametrize("depth", [1, 3])
def test_every_leaf_value(seed, leaf, depth):
    problem = random_problem(seed, discount=0.9, terminal=seed % 2 == 1, observations=3 - seed % 2)
    value_of = {
        "zero": lambda b: 0.0,
        "immediate": lambda b: max(problem.reward(b, a) for a in problem.actions(b)),
        ImmediateValue(1): lambda b: problem.reward(b, 1),
    }[leaf]
    exact = exact_value(problem, horizon=depth, final_value=value_of)
    for engine in ENGINES:
        for bound in ("fib", "qmdp", "range"):
            decision = RTBSS(depth, leaf, bound, engine=engine).decide(problem)
            assert decision.value == pytest.approx(exact, abs=1e-10)
    for convex in (False, True):
        decision = RTBSS(depth, lambda p, b: value_of(b), convex=convex).decide(problem)
        assert decision.value == pytest.approx(exact, abs=1e-10)
        assert decision.stats["pruning"] == (convex and depth > 1)


@pytest.mark.parametrize("seed", few(2, range(8)))
def test_fractions_stay_exact(seed):
    problem = random_fractions(seed)
    exact = exact_value(problem, horizon=4)
    for prune in (True, False):
        decision = RTBSS(4, prune=prune, ties="all").decide(problem)
        assert decision.stats["engine"] == "plain"
        assert isinstance(decision.value, Fraction)
        assert decision.value == exact


def test_pruning_visits_less():
    problem = random_problem(5, states=3, actions=4, observations=2, discount=0.9, rewards="negative")
    counts = {
        bound: RTBSS(4, upper_bound=bound, engine="plain").decide(problem).stats["nodes"]
        for bound in ("fib", "qmdp", "range")
    }
    everything = RTBSS(4, engine="plain", prune=False, merge_tolerance=None).decide(problem).stats
    assert counts["fib"] <= counts["qmdp"] <= counts["range"] <= everything["nodes"]
    assert counts["fib"] < everything["nodes"] / 2
    assert everything["pruned"] == 0


def test_small_branches_are_not_dropped():
    rare = 5e-7
    problem = POMDP(
        transition=lambda s, a: {"jackpot": rare, "nothing": 1 - rare} if s == "start" else s,
        observation=lambda s, a: s,
        reward=lambda s, a: 1e6 if (s == "jackpot" and a == "take") else (0.1 if a == "safe" else 0),
        initial_belief={"start": 1},
        legal_actions=["take", "safe"],
    )
    for engine in ENGINES:
        decision = RTBSS(2, engine=engine).decide(problem)
        best = 0.1 + rare * 1e6 + (1 - rare) * 0.1
        assert decision.value == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_equal_beliefs_are_expanded_once(engine):
    once = RTBSS(5, engine=engine, prune=False).decide(tiger())
    merged = RTBSS(5, engine=engine, prune=False, merge_tolerance=1e-12).decide(tiger())
    always = RTBSS(5, engine=engine, prune=False, merge_tolerance=None).decide(tiger())
    assert merged.stats["nodes"] <= once.stats["nodes"] < always.stats["nodes"]
    assert always.stats["reused"] == 0
    assert merged.stats["reused"] > 0
    assert once.value == pytest.approx(always.value, abs=1e-12)
    assert merged.value == pytest.approx(always.value, abs=1e-10)
    assert merged.stats["merge_tolerance"] == 1e-12


def test_arrays_look_hundreds_of_actions_ahead():
    decision = RTBSS(400, merge_tolerance=1e-9, prune=False).decide(tiger(discount=0.5))
    assert decision.stats["engine"] == "arrays"
    assert decision.action == "listen"
    with pytest.raises(PlanningError, match=r"^depth: got 300; expected at most 250"):
        RTBSS(300, lambda p, b: 0).decide(tiger())


def test_a_wrong_bound_is_refused():
    for wrong in (lambda p, b, a, d: -100.0, lambda p, b, a, d: -1.5):
        with pytest.raises(PlanningError, match=r"^upper_bound: got -1.* for action 'listen'"):
            RTBSS(3, upper_bound=wrong).decide(tiger())
    assert RTBSS(3, upper_bound=lambda p, b, a, d: 1e9).decide(tiger()).value == pytest.approx(2.3098)


@pytest.mark.parametrize("engine", ENGINES)
def test_legal_actions_and_the_end(engine):
    eta = {("c0", "c1"): 0.7, ("c0", "c2"): 0.3, ("c1", "c3"): 0.6, ("c1", "c4"): 0.4}
    problem = search_tree(
        {"c0": ["c1", "c2"], "c1": ["c3", "c4"]},
        lambda c, d: eta[c, d],
        {"c0": 0.1, "c1": 0.5, "c2": 0.6, "c3": 0.9, "c4": 0.8},
    )
    one_step = RTBSS(1, ImmediateValue("search"), engine=engine).decide(problem)
    assert one_step.q_values["search"] == pytest.approx(0.1)
    assert one_step.q_values["descend"] == pytest.approx(0.7 * (0.7 * 1.5 - 1) + 0.3 * (0.3 * 1.6 - 1))
    leaf = Belief({("c2", 1): 0.25, ("c2", 0): 0.75})
    at_leaf = RTBSS(1, ImmediateValue("search"), engine=engine).decide(problem, leaf)
    assert at_leaf.q_values == {"search": pytest.approx(0.25 * 1.6 - 1)}
    for fringe in ("zero", "immediate", ImmediateValue("search")):
        deep = RTBSS(5, fringe, engine=engine).decide(problem)
        assert deep.value == pytest.approx(exact_value(problem, horizon=5), abs=1e-12)
    with pytest.raises(PlanningError, match="belief: got terminal"):
        RTBSS(2, engine=engine).decide(problem, Belief.certain(("end", 1)))
    with pytest.raises(PlanningError, match=r"ImmediateValue.*descend.*, which is not legal at a leaf"):
        RTBSS(1, ImmediateValue("descend"), engine=engine).decide(problem)


@pytest.mark.parametrize("engine", ENGINES)
def test_legal_by_observation(engine):
    def legal(observation):
        return {None: ["look"], "hot": ["look", "dig"], "cold": ["look", "leave"]}[observation]

    problem = POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: {"hot": 0.8, "cold": 0.2} if s == "gold" else {"hot": 0.3, "cold": 0.7},
        reward=lambda s, a: {"look": -1, "dig": 10 if s == "gold" else -5, "leave": 0.5}[a],
        initial_belief={"gold": 0.5, "sand": 0.5},
        discount=0.9,
        legal_actions=legal,
        legal_by="observation",
        actions=["look", "dig", "leave"],
    )
    solution = value_iteration(problem, 4)
    for observation in (None, "hot", "cold"):
        for depth in (1, 2, 4):
            exact = exact_value(problem, horizon=depth, observation=observation)
            for bound in ("fib", "qmdp", "range"):
                planner = RTBSS(depth, upper_bound=bound, engine=engine)
                decision = planner.decide(problem, observation=observation)
                assert decision.value == pytest.approx(exact, abs=1e-12)
                assert set(decision.q_values) == set(legal(observation))
            value = solution.value(problem.initial_belief, observation=observation, to_go=depth)
            assert value == pytest.approx(exact, abs=1e-9)


def test_legal_by_belief_goes_plain():
    problem = POMDP(
        transition=lambda s, a: s,
        observation=lambda s, a: {s: 0.8, 1 - s: 0.2},
        reward=lambda s, a: -1 if a == "look" else (5 if s == 1 else -5),
        initial_belief={0: 0.5, 1: 0.5},
        legal_actions=lambda b: ["look", "bet"] if b[1] > 0.9 else ["look"],
        legal_by="belief",
        actions=["look", "bet"],
    )
    decision = RTBSS(4).decide(problem)
    assert decision.stats["engine"] == "plain"
    assert not decision.stats["pruning"]
    assert decision.value == pytest.approx(exact_value(problem, horizon=4), abs=1e-12)


def test_the_papers_three_readings():
    """Depth 1 with "search now", literal Expand with d = 2, and max(Q(search), 0) at the fringe."""
    eta, r0, r1, r2, b = Fraction(2, 3), Fraction(1, 10), Fraction(1, 2), Fraction(3, 5), Fraction(1, 2)
    problem = three_node(eta, r0, r1, r2, b)
    search_now = [eta * (eta * b * (r1 + 1) - 1), (1 - eta) * ((1 - eta) * b * (r2 + 1) - 1)]
    one_step = RTBSS(1, ImmediateValue("search")).decide(problem)
    assert one_step.q_values == {"descend": sum(search_now), "search": b * (1 + r0) - 1}
    literal = RTBSS(2, "immediate", prune=False).decide(problem)
    assert literal.q_values["descend"] == sum(search_now)
    never_negative = RTBSS(1, lambda p, belief: max(p.reward(belief, "search"), 0)).decide(problem)
    assert never_negative.q_values["descend"] == sum(max(q, 0) for q in search_now)


def test_updaters_of_every_form():
    problem = tiger()

    class Update:
        def update(self, belief, action, observation):
            row = problem.joint(belief, action)[observation]
            return Belief.normalized(row)

    class Branches:
        def branches(self, belief, action):
            for observation, row in problem.joint(belief, action).items():
                yield observation, sum(row.values()), Belief.normalized(row)

    for updater in (Update(), Branches(), Update().update):
        decision = RTBSS(4, updater=updater).decide(problem)
        assert decision.stats["engine"] == "plain"
        assert decision.value == pytest.approx(GOLDEN[3], abs=5e-7)
    with pytest.raises(ParameterError, match="updater: got 3; expected a function"):
        RTBSS(2, updater=3).decide(problem)


class Skewed:
    """Bayes' rule for the posteriors, but sure to hear the left: the two methods of a `BeliefUpdater`, and no more."""

    def __init__(self, problem):
        self.bayes = BayesUpdater(problem)
        self.update = self.bayes.update

    def evidence(self, belief, action, observation):
        if action == "listen":
            return 1.0 if observation == "hear-left" else 0.0
        return self.bayes.evidence(belief, action, observation)


@pytest.mark.parametrize("prune", [False, True])
def test_posteriors_and_evidence_both_come_from_the_updater(prune):
    problem = tiger()
    start = problem.initial_belief
    bound = (lambda p, b, a, d: 1e3) if prune else "fib"
    decision = RTBSS(3, upper_bound=bound, updater=Skewed(problem), prune=prune).decide(problem)
    one = Skewed(problem).update(start, "listen", "hear-left")
    two = Skewed(problem).update(one, "listen", "hear-left")
    best = max(problem.reward(two, a) for a in problem.actions(two))
    assert decision.value == pytest.approx(-1 - 0.95 + 0.95**2 * best, abs=1e-12)  # by hand: listen, listen, open
    for wrapped in (as_updater(Skewed(problem), problem), as_updater(Skewed(problem), problem).branches):
        other = wrapped if not callable(wrapped) else type("Branches", (), {"branches": staticmethod(wrapped)})()
        assert RTBSS(3, updater=other, prune=False).decide(problem).value == decision.value
    tree = AndOrTree.build(problem, depth=3, updater=Skewed(problem))
    assert tree.value == decision.value
    after = [n for n in tree.or_nodes if n.parent >= 0 and tree.and_nodes[n.parent].action == "listen"]
    assert {(n.observation, n.probability) for n in after} == {("hear-left", 1.0)}


def test_named_bounds_are_left_alone_where_beliefs_are_not_by_bayes_rule():
    """Where every sound is a lie, the value of three steps lies above any bound that the problem's models give."""
    problem = tiger()
    sure = [Belief.certain("left"), Belief.certain("right")]

    def prophet(belief, action, observation):
        return sure[observation == "hear-right"]

    decision = RTBSS(3, updater=prophet).decide(problem)
    assert not decision.stats["pruning"]
    assert decision.value == pytest.approx(-1 + 0.95 * 10 + 0.95**2 * 10)
    assert RTBSS(3, updater=BayesUpdater(problem)).decide(problem).stats["pruning"]


def test_symbols_need_numbers_to_decide():
    sympy = pytest.importorskip("sympy")
    b, e = sympy.symbols("b eta", positive=True)
    problem = three_node(e, sympy.Rational(1, 10), sympy.Rational(1, 2), sympy.Rational(3, 5), b)
    with pytest.raises(PlanningError, match=r"^problem: got the value"):
        RTBSS(1, ImmediateValue("search")).decide(problem)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"depth": 0}, "depth: got 0; expected an integer"),
        ({"depth": 1.5}, "depth: got 1.5; expected an integer"),
        ({"depth": 1, "budget": "a"}, "budget: got 'a'"),
        ({"depth": 2, "leaf_value": "best"}, "leaf_value: got 'best'"),
        ({"depth": 2, "leaf_value": 7}, "leaf_value: got 7; expected a name"),
        ({"depth": 2, "upper_bound": "mdp"}, "upper_bound: got 'mdp'"),
        ({"depth": 2, "ties": "last"}, "ties: got 'last'"),
        ({"depth": 2, "budget": 0}, "budget: got 0;"),
        ({"depth": 2, "merge_tolerance": -1}, "merge_tolerance: got -1;"),
        ({"depth": 2, "engine": "arrays", "updater": lambda b, a, o: b}, "engine: got 'arrays' with updater"),
    ],
)
def test_refused_arguments(arguments, message):
    with pytest.raises(ParameterError, match=message):
        RTBSS(**arguments)
    with pytest.raises(ParameterError, match="actions 'listen'"):
        RTBSS(2, ImmediateValue("shout"), engine="arrays").decide(tiger())


def test_endless_problems_are_searched_as_far_as_one_looks():
    endless = POMDP(
        transition=lambda s, a: {s + 1: 0.5, s - 1: 0.5} if a == "walk" else s,
        observation=lambda next_state, a: next_state % 2,
        reward=lambda s, a: s if a == "cash" else 0,
        initial_belief={0: 1},
        discount=0.9,
        legal_actions=["cash", "walk"],
    )
    decision = RTBSS(4, engine="plain", prune=False, merge_tolerance=1e-9).decide(endless)
    assert decision.value == pytest.approx(exact_value(endless, horizon=4), abs=1e-12)
    assert "states" not in endless.__dict__


def _nothing(problem, belief):
    return 0


def test_planners_travel_to_other_processes():
    for planner in (
        RTBSS(3, budget=10**6, ties="all"),
        RTBSS(2, ImmediateValue("listen")),
        RTBSS(3, _nothing, convex=True),
    ):
        before = planner.decide(tiger())
        again = pickle.loads(pickle.dumps(planner))
        assert repr(again) == repr(planner)
        assert again.decide(tiger()) == before
        assert copy.deepcopy(planner).budget == planner.budget


def test_in_pomdp_pys_loop():
    import pomdp_py

    problem = tiger()

    class T(pomdp_py.TransitionModel):
        def probability(self, next_state, state, action):
            return problem.successors(state, action).get(next_state, 0)

        def get_all_states(self):
            return list(problem.states)

    class Z(pomdp_py.ObservationModel):
        def probability(self, observation, next_state, action):
            return problem.observation_distribution(next_state, action, None).get(observation, 0)

        def get_all_observations(self):
            return list(problem.all_observations)

    class R(pomdp_py.RewardModel):
        def sample(self, state, action, next_state):
            return problem.expected_reward(state, action)

    class Policy(pomdp_py.RolloutPolicy):
        def get_all_actions(self, state=None, history=None):
            return list(problem.all_actions)

    agent = pomdp_py.Agent(pomdp_py.Histogram({"left": 0.5, "right": 0.5}), Policy(), T(), Z(), R())
    for planner in (RTBSS(3), RTBSS(3, problem=problem)):
        assert isinstance(planner, pomdp_py.Planner)
        assert planner.plan(agent) == "listen"
        assert planner.update(agent, "listen", "hear-left") is None
        agent.set_belief(pomdp_py.Histogram({"left": 0.999, "right": 0.001}))
        assert planner.plan(agent) == "open-right"
        agent.set_belief(pomdp_py.Histogram({"left": 0.5, "right": 0.5}))


def test_a_dict_stands_for_a_belief_and_arguments_in_the_other_order_are_refused():
    problem = tiger()
    start = dict(problem.initial_belief.items())
    for engine in ("plain", "arrays"):
        planner = RTBSS(depth=2, engine=engine)
        assert planner.decide(problem, start).value == planner.decide(problem).value
        with pytest.raises(ModelError, match="sum to"):
            planner.decide(problem, dict.fromkeys(start, 0.6))
        with pytest.raises(ModelError, match="expected a Belief or a dict"):
            planner.decide(problem, "tiger-left")
        with pytest.raises(ModelError, match=r"decide: .* expected a POMDP"):
            planner.decide(problem.initial_belief, problem)


def test_the_class_of_an_updater_is_refused():
    with pytest.raises(ParameterError, match="updater: got the class BayesUpdater"):
        RTBSS(depth=1, updater=BayesUpdater).decide(tiger())


@pytest.mark.parametrize("engine", ["plain", "arrays"])
def test_a_belief_off_the_space_is_named(engine):
    with pytest.raises(ModelError, match=r"^belief: .*'nowhere'"):
        RTBSS(2, engine=engine).decide(tiger(), Belief({"nowhere": 1.0}))


def test_the_depth_and_the_merging_that_are_just_allowed():
    assert RTBSS(1, merge_tolerance=_FINEST_MERGING).merge_tolerance == _FINEST_MERGING
    done = POMDP(
        transition=lambda s, a: "end",
        observation=lambda s, a: "o",
        reward=lambda s, a: 1,
        initial_belief={"start": 1},
        terminal=["end"],
        legal_actions=["go"],
    )
    assert RTBSS(_DEEPEST_RECURSION, engine="plain").decide(done).value == 1
    with pytest.raises(PlanningError, match=r"^depth: got 251"):
        RTBSS(_DEEPEST_RECURSION + 1, engine="plain").decide(done)
