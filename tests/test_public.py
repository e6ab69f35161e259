"""What users import: every name is there, sorted and documented, and importing loads no more than it must."""

import gc
import importlib
import pkgutil
import subprocess
import sys
import threading
from contextlib import suppress
from types import MappingProxyType

import pytest

import pomdp_hier
from pomdp_hier._imports import postpone, uncollected

HEAVY = ["dask", "joblib", "matplotlib", "narwhals", "numba", "pandas", "polars", "pyarrow", "sklearn", "sympy"]
FRONTS = {  # what users call or construct; a front grows here, on purpose
    "pomdp_hier": (
        "POMDP RTBSS Action AndOrTree BayesUpdater Belief BeliefUpdater Hierarchy Observation "
        "ObservationModel RewardModel State TransitionModel __version__ appraise check_problem compare "
        "compare_policies compare_updaters diagnose evaluate expected_search_length find_misfiled fit_delta "
        "hqs_samples hqs_score improve load_features policy_value predicted_and_observed read_pomdp read_searches "
        "run_experiment simulate solve three_node value_iteration verify write_pomdp"
    ),
    "pomdp_hier.pomdp": "ObservationModel RewardModel TransitionModel to_agent to_environment",
    "pomdp_hier.beliefs": "BeliefUpdater ParticleUpdater TabularUpdater assert_updaters_agree",
    "pomdp_hier.planning": (
        "POMCP POUCT RTBSS AlphaVectorPolicy AndOrTree Decision FIBPolicy FiniteStateController "
        "ImmediateValue Policy QMDPPolicy RandomPolicy ThresholdPolicy read_policy solve value_bound "
        "value_iteration verify write_policy"
    ),
    "pomdp_hier.simulation": "compare_policies mdp_value policy_value run_experiment simulate",
    "pomdp_hier.problems": "cheese_maze corridor crying_baby maze_4x3 rock_sample tiger",
    "pomdp_hier.hierarchy": "Hierarchy",
    "pomdp_hier.features": "Cosine InverseSquaredEuclidean NegativeEuclidean Precomputed read_frame text_features",
    "pomdp_hier.measures": (
        "bakers_gamma class_f_score cophenetic_correlation dasgupta_cost dendrogram_purity entanglement hai "
        "hierarchical_precision_recall moseley_wang_revenue robinson_foulds tree_sampling_divergence "
        "triplet_distance"
    ),
    "pomdp_hier.filing": "compare_features find_misfiled",
    "pomdp_hier.hqs": (
        "ClosedFormUpdater FixedLevel LookAhead StoppingRule calibrate_delta exhaustive_policy "
        "return_search_problem rtbss_policy search_environment search_problem"
    ),
    "pomdp_hier.hqs.model": "Descend Node Search SearchState",
    "pomdp_hier.hqs.paper": "PAPER_TABLE PAPER_TEXT load_amazon12 load_dvd reproduce three_node",
    "pomdp_hier.analysis": (
        "apply_moves appraise best_cut check_structure compare compare_search_policies delta_sweep diagnose "
        "hqs_scorer score_by_levels suggest_moves"
    ),
    "pomdp_hier.improvement": "apply_decisions apply_edits improve read_decisions regroup",
    "pomdp_hier.searches": "fit_delta predicted_and_observed read_searches",
    "pomdp_hier.distributed": "evaluate_distributed",
    "pomdp_hier.report": (
        "draw_action_regions draw_alpha_vectors draw_and_or draw_backups draw_belief_simplex "
        "draw_belief_trace draw_bounds draw_controller draw_experiment draw_icicle draw_policy_comparison "
        "draw_score_curve draw_value_density write_comparison write_regrouping write_report "
        "write_teaching_page"
    ),
}
# modules that the code imports only where their extra is installed
WITH_EXTRAS = {"pomdp_hier.planning.point_based.on_numba", "pomdp_hier._engines.on_numba"}


def modules():
    found = pkgutil.walk_packages(pomdp_hier.__path__, "pomdp_hier.")
    return ["pomdp_hier", *(m.name for m in found if m.name not in {"pomdp_hier.__main__", *WITH_EXTRAS})]


def rank(name):
    """CONSTANTS before Classes before functions, each in the order of its letters: what ruff calls isort-style."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return kind, name


@pytest.mark.parametrize("module", modules())
def test_every_name_of_every_all_is_there_and_sorted(module):
    loaded = importlib.import_module(module)
    names = getattr(loaded, "__all__", [])
    assert [name for name in names if not hasattr(loaded, name)] == []
    assert names == sorted(set(names), key=rank)


def test_a_module_does_not_take_the_place_of_a_public_name(tmp_path, monkeypatch):
    package = tmp_path / "a_package_with_lazy_names"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from pomdp_hier._imports import attach\n"
        '__getattr__, __dir__ = attach(__name__, {f"{__name__}.regroup": "regroup"}, globals())\n'
    )
    (package / "regroup.py").write_text("def regroup(): return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    front = importlib.import_module(package.name)
    assert importlib.import_module(f"{package.name}.regroup").__name__ == f"{package.name}.regroup"
    assert front.regroup() == 1


@pytest.mark.parametrize("module", FRONTS)
def test_every_public_name_is_documented_and_listed(module):
    loaded = importlib.import_module(module)
    assert loaded.__doc__
    for name in loaded.__all__:
        value = getattr(loaded, name)
        # settings cannot carry a docstring, a union of types has one of its own: both are described by their module
        assert isinstance(value, MappingProxyType) or (value.__doc__ or "").strip(), name
        inherited = next((base.__doc__ for base in getattr(value, "__mro__", ())[1:] if base.__doc__), None)
        assert value.__doc__ != inherited or not isinstance(value, type), name
    assert set(loaded.__all__) <= set(dir(loaded))


@pytest.mark.parametrize("module", FRONTS)
def test_a_front_lists_these_names_and_no_others(module):
    assert importlib.import_module(module).__all__ == FRONTS[module].split()


def loaded_by(code):
    """The top-level packages that a fresh interpreter has loaded after the code."""
    script = f"import sys\n{code}\nprint(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    return set(
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    )


def test_importing_the_package_loads_no_extra_and_no_pomdp_py():
    loaded = loaded_by("import pomdp_hier, pomdp_hier.hqs")
    assert "pomdp_hier" in loaded
    assert loaded.isdisjoint([*HEAVY, "pomdp_py", "numpy", "scipy"])


def test_solving_imports_no_statistics_until_pomdp_py_is_asked_for_them():
    code = (
        "from pomdp_hier import read_pomdp, solve\n"
        "import pomdp_py, sys\n"
        "assert {'scipy.stats', 'scipy.optimize'}.isdisjoint(sys.modules)\n"
        "assert {'BLQR', 'Gaussian'} <= set(dir(pomdp_py))\n"
        "from pomdp_py import *\n"
        "from pomdp_py.representations.distribution import gaussian\n"
        "assert Gaussian is gaussian.Gaussian is pomdp_py.Gaussian and issubclass(BLQR, pomdp_py.Planner)\n"
        "assert POUCT is pomdp_py.algorithms.po_uct.POUCT"
    )
    assert "scipy" in loaded_by(code)


def test_the_papers_trees_are_read_without_the_score():
    code = (
        "from pomdp_hier.hqs.paper import load_amazon12\n"
        "load_amazon12()\n"
        "assert 'pomdp_hier.hqs.score' not in sys.modules and 'scipy.optimize' not in sys.modules"
    )
    assert "numpy" in loaded_by(code)


@pytest.mark.parametrize("was_on", [True, False])
@pytest.mark.parametrize("frozen", [True, False])
def test_imports_leave_the_garbage_collector_as_it_was(was_on, frozen):
    def in_a_thread():
        with uncollected:
            seen.append(gc.isenabled())
            begun.set()
            left.wait()

    before, seen, begun, left = gc.isenabled(), [], threading.Event(), threading.Event()
    (gc.enable if was_on else gc.disable)()
    try:
        if frozen:
            gc.freeze()
        count = gc.get_freeze_count()
        thread = threading.Thread(target=in_a_thread)
        with uncollected:
            thread.start()
            begun.wait()
            with suppress(KeyboardInterrupt), uncollected:
                seen.append(gc.isenabled())
                raise KeyboardInterrupt
            seen.append(gc.isenabled())
        seen.append(gc.isenabled())  # the thread is not done
        left.set()
        thread.join()
        assert seen == [False] * 4
        assert gc.isenabled() is was_on
        assert gc.get_freeze_count() == count
    finally:
        gc.unfreeze()
        (gc.enable if before else gc.disable)()


def test_threads_that_import_a_postponed_module_get_it(tmp_path, monkeypatch):
    package = tmp_path / "a_package_with_a_late_module"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from a_package_with_a_late_module.late import Late\nfrom a_package_with_a_late_module.early import Early\n"
    )
    (package / "early.py").write_text(
        "import threading, time\n"
        "started, found = threading.Event(), []\n"
        "def other():\n"
        "    started.set()\n"
        "    from a_package_with_a_late_module.late import Late\n"
        "    found.append(Late)\n"
        "thread = threading.Thread(target=other)\n"
        "thread.start()\n"
        "started.wait()\n"
        "time.sleep(0.05)\n"  # for the other thread to find the stand-in
        "class Early: pass\n"
    )
    (package / "late.py").write_text("class Late: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = list(sys.meta_path)
    postpone(package.name, {f"{package.name}.late": "Late"})
    assert sys.meta_path == before
    front, early = sys.modules[package.name], importlib.import_module(f"{package.name}.early")
    early.thread.join(timeout=20)
    assert early.found == [front.Late]
    assert front.Late is importlib.import_module(f"{package.name}.late").Late
    with pytest.raises(AttributeError, match="Later"):
        front.Later  # noqa: B018


def test_scoring_loads_no_pomdp_py():
    code = (
        "from pomdp_hier import Hierarchy, appraise, diagnose, evaluate, hqs_samples, hqs_score\n"
        "from pomdp_hier.hqs.result import HQSResult\n"
        "from pomdp_hier.hqs.paper import load_amazon12\n"
        "from pomdp_hier.analysis import delta_sweep, hqs_scorer\n"
        "from pomdp_hier.hqs.paper import PAPER_TABLE\n"
        "shop = load_amazon12()\n"
        "hqs_score(shop.similarity, shop.hierarchies['A'], similarity='precomputed', engine='numpy', **PAPER_TABLE)"
    )
    assert loaded_by(code).isdisjoint(["pomdp_py", *set(HEAVY) - {"numba"}])


def test_a_name_that_is_not_there_is_an_attribute_error_that_names_it():
    with pytest.raises(AttributeError, match="'hqs_scroe'"):
        pomdp_hier.hqs_scroe  # noqa: B018  # the access is what is tested
