"""How fast is the engine, on which shapes and sizes, and beside its peers?

Every case runs in a process of its own, so that its peak memory is its own. Times are CPU seconds, medians of the
repeats; "peak" is what scoring adds to the resident memory of the input and the tree. "forced" descends to the leaves
whatever happens, the worst case; "0.005" is the paper's policy at that temperature. "bare" is a hand-written kernel for
binary trees that does nothing but dot products, softmax and decisions; ratios to it come from runs in turns.
"""

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from pomdp_hier._engines.dispatch import choose_engine, run_engine
from pomdp_hier._engines.task import AlwaysDescend, LookAhead, Rule, Task
from pomdp_hier.features.affinity import Affinity, affinity
from pomdp_hier.features.similarity import InverseSquaredEuclidean
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.guidance import node_rewards, temperatures
from pomdp_hier.hqs.score import evaluate

SHAPES = ("balanced", "dendrogram", "caterpillar", "wide", "taxonomy")
SIZES = (1_000, 10_000, 37_826, 100_000, 1_000_000)


def linkage(n_items: int, shape: str, rng: np.random.Generator) -> np.ndarray:
    """A linkage matrix whose merges split the leaf order in halves, unevenly at random, or one item at a time."""
    spans = np.array([[0, n_items]])
    merges: list[np.ndarray] = []  # per level from the root: low, split, high
    while len(spans):
        low, high = spans.T
        size = high - low
        if shape == "balanced":
            split = low + size // 2
        elif shape == "caterpillar":
            # One level holds one merge, so all of them are laid down at once.
            low = np.arange(n_items - 1)
            merges = [np.array([[k, k + 1, n_items]]) for k in low]
            break
        else:
            split = low + 1 + np.minimum((rng.beta(0.55, 0.55, len(size)) * (size - 1)).astype(int), size - 2)
        merges.append(np.stack([low, split, high], axis=1))
        spans = np.concatenate([np.stack([low, split], axis=1), np.stack([split, high], axis=1)])
        spans = spans[spans[:, 1] - spans[:, 0] > 1]
    order = np.concatenate(merges[::-1])
    keys = order[:, 0] * (n_items + 1) + order[:, 2]
    by_key = np.argsort(keys)

    def node(low: np.ndarray, high: np.ndarray) -> np.ndarray:
        found = by_key[np.minimum(np.searchsorted(keys[by_key], low * (n_items + 1) + high), len(keys) - 1)]
        return np.where(high - low == 1, low, n_items + found)

    pairs = np.stack([node(order[:, 0], order[:, 1]), node(order[:, 1], order[:, 2])], axis=1)
    heights = np.arange(1.0, n_items)
    return np.column_stack([pairs, heights, order[:, 2] - order[:, 0]])


def make_tree(n_items: int, shape: str, rng: np.random.Generator, tree_file: str | None) -> Hierarchy:
    """A tree of that shape, or the one of a JSON file of children lists."""
    if tree_file:
        return Hierarchy.from_children(json.loads(Path(tree_file).read_text()), n_items, singletons=True)
    if shape == "wide":
        width = min(5_000, n_items // 4)
        groups = np.array_split(np.arange(n_items), width)
        children = [group.tolist() for group in groups] + [list(range(n_items, n_items + width))]
        return Hierarchy.from_children(children, n_items)
    if shape == "taxonomy":  # leaf clusters of a few items, ten nodes or so below each other node: a catalogue, ICD-10
        cuts = np.sort(rng.choice(np.arange(1, n_items), n_items // 4, replace=False))
        groups, children = np.split(np.arange(n_items), cuts), []
        while True:
            first = n_items + len(children)
            children += [group.tolist() for group in groups]
            if len(groups) == 1:
                return Hierarchy.from_children(children, n_items)
            groups = np.array_split(np.arange(first, n_items + len(children)), -(-len(groups) // 10))
    return Hierarchy.from_linkage(linkage(n_items, shape, rng))


def make_features(tree: Hierarchy, n_columns: int, dtype: str, sparse: bool, rng: np.random.Generator) -> Any:
    """Features along the tree (a walk from the root, steps halved every fourth level); or a few terms each."""
    if sparse:
        terms = 20
        base = (tree.starts[: tree.n_items] * 40_000 // tree.n_items)[:, None]
        columns = (base + rng.geometric(0.002, (tree.n_items, terms))) % 43_000
        rows = np.repeat(np.arange(tree.n_items), terms)
        values = rng.random(tree.n_items * terms).astype(dtype)
        return sp.csr_matrix((values, (rows, columns.reshape(-1))), shape=(tree.n_items, 43_000))
    X = np.zeros((tree.n_items, n_columns), dtype=dtype)
    sizes = tree.sizes[tree.n_items :]
    for level in range(min(int(tree.height), 12)):
        here = tree.n_items + np.flatnonzero((tree.levels[tree.n_items :] == level) & (sizes > 1))
        step = np.zeros(tree.n_items, dtype=np.int64)
        np.add.at(step, tree.starts[here], 1)
        group = np.cumsum(step)
        shift = rng.standard_normal((len(here) + 1, n_columns)).astype(dtype) * 0.5 ** (level / 4)
        X[tree.item_order] += shift[np.minimum(group, len(here))]
    X += 0.1 * rng.standard_normal(X.shape).astype(dtype)
    return X


def on_disk(X: np.ndarray) -> np.ndarray:
    """Return the features as a memory map of a temporary file."""
    with tempfile.TemporaryFile() as file:
        mapped = np.memmap(file, dtype=X.dtype, mode="w+", shape=X.shape)
    mapped[:] = X
    mapped.flush()
    return mapped


def resident(restart: bool = False) -> float:
    """Peak resident memory of this process so far, in MB; or, on Linux, reset it to the current memory."""
    if restart and os.path.exists("/proc/self/clear_refs"):
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status")
    if status.exists():
        peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(peak.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def median_seconds(work: Callable[[], Any], repeats: int) -> float:
    """Median CPU time of a call, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return float(np.median(times))


def task_of(close: Affinity, rule: Rule, threads: int) -> Task:
    """Return the task of an engine, with these features and temperature 0.005."""
    tree = close.hierarchy
    levels = np.arange(int(tree.height) + 1)
    return Task(close, node_rewards(tree), temperatures(levels, 0.005), rule, enter_own_singleton=True, threads=threads)


def run_case(case: dict[str, Any]) -> dict[str, Any]:
    """Score one case; return its figures."""
    rng = np.random.default_rng(0)
    start = time.perf_counter()
    tree = make_tree(case["n"], case["shape"], rng, case["tree"])
    built = time.perf_counter() - start
    X = make_features(tree, case["columns"], case["dtype"], case["sparse"], rng)
    if case["memmap"]:
        X = on_disk(X)
    compiled = case["engine"] == "numba"
    if compiled:  # once over nothing much: what is measured is not the loading of numba
        small = make_tree(1_500, "dendrogram", rng, None)
        near = affinity(make_features(small, 100, case["dtype"], False, rng), small, case["similarity"])
        run_engine(task_of(near, AlwaysDescend(), 1), np.arange(small.n_items), "numba", lambda count: None)
    before = resident(restart=True)
    summed = []
    for _ in range(case["repeats"]):
        start = time.process_time()
        close = affinity(X, tree, case["similarity"], compiled=compiled)
        summed.append(time.process_time() - start)
    figures = {**case, "height": int(tree.height), "tree_s": built, "sums_s": float(np.median(summed))}
    everyone = np.arange(tree.n_items)
    for name, rule in (("forced", AlwaysDescend()), ("0.005", LookAhead(1))):
        if name == "forced" and case["shape"] == "caterpillar" and case["n"] > 10_000 and not case["patient"]:
            continue
        task = task_of(close, rule, case["threads"])
        engine = choose_engine(task, "auto" if case["sparse"] else case["engine"], everyone)
        run_engine(task, everyone[:100], engine, lambda count: None)
        clock, start = time.perf_counter(), time.process_time()
        stops = run_engine(task, everyone, engine, lambda count: None)
        cpu = time.process_time() - start
        figures[f"{name}_wall_s"] = time.perf_counter() - clock
        if case["repeats"] > 1:
            cpu = median_seconds(
                lambda t=task, e=engine: run_engine(t, everyone, e, lambda count: None), case["repeats"]
            )
        visits = int((tree.levels[stops.nodes] + 1).sum())
        figures |= {f"{name}_cpu_s": cpu, f"{name}_levels": visits / tree.n_items}
        figures |= {f"{name}_items_per_s": tree.n_items / figures[f"{name}_wall_s"], f"{name}_ns": 1e9 * cpu / visits}
    figures |= {"peak_mb": resident() - before, "process_mb": resident()}
    if case["bare"]:
        figures |= in_turns(tree, close, case["repeats"])
    return figures


def in_turns(tree: Hierarchy, close: Any, repeats: int) -> dict[str, float]:
    """Ratios of CPU times forced to the leaves: numpy to numba, and numba to the bare kernel.

    On a shared machine one run of a second differs from the next by half. So the three take turns, and a ratio is the
    median over pairs of runs that followed one another.
    """
    task = task_of(close, AlwaysDescend(), threads=1)
    everyone = np.arange(tree.n_items)
    works = [lambda e=engine: run_engine(task, everyone, e, lambda count: None) for engine in ("numpy", "numba")]
    works.append(bare_kernel(tree, close))
    for work in works:
        work()
    times = np.array([[median_seconds(work, 1) for work in works] for _ in range(3 * repeats)])
    return {
        "bare_cpu_s": float(np.median(times[:, 2])),
        "numpy_to_numba": float(np.median(times[:, 0] / times[:, 1])),
        "numba_to_bare": float(np.median(times[:, 1] / times[:, 2])),
    }


def bare_kernel(tree: Hierarchy, close: Any) -> Callable[[], None]:
    """Return a function that runs the bare kernel, forced to the leaves of a binary tree."""
    import numba

    @numba.njit(fastmath={"reassoc", "contract", "nsz"}, nogil=True)
    def bare(order, rows, left, right, starts, sizes, worth, root, delta, stops):  # type: ignore[no-untyped-def]
        for j in range(len(order)):
            x, node, p = order[j], root, 1.0
            while left[node] >= 0:
                a, b = left[node], right[node]
                sim_a, sim_b = 0.0, 0.0
                for d in range(rows.shape[1]):
                    sim_a += rows[a, d] * rows[x, d]
                for d in range(rows.shape[1]):
                    sim_b += rows[b, d] * rows[x, d]
                in_a = starts[a] <= starts[x] < starts[a] + sizes[a]
                sim_a = (sim_a - in_a) / max(sizes[a] - in_a, 1)
                sim_b = (sim_b - (not in_a)) / max(sizes[b] - (not in_a), 1)
                eta = 1.0 / (1.0 + np.exp((sim_b - sim_a) / delta))
                gain = eta * eta * worth[a] + (1.0 - eta) * (1.0 - eta) * worth[b] - worth[node]
                if gain < -1e9:
                    break
                p *= eta if in_a else 1.0 - eta
                node = a if in_a else b
            stops[j] = p

    rows = np.concatenate([close.rows(np.arange(tree.n_items)), close.sums])
    left, right = np.full(tree.n_nodes, -1), np.full(tree.n_nodes, -1)
    inner = np.flatnonzero(np.diff(tree.child_offsets) == 2)
    left[inner] = tree.child_nodes[tree.child_offsets[inner]]
    right[inner] = tree.child_nodes[tree.child_offsets[inner] + 1]
    worth, stops = node_rewards(tree).reward + 1.0, np.empty(tree.n_items)
    arguments = (rows, left, right, tree.starts, tree.sizes, worth, int(tree.root), 0.005, stops)
    return lambda: bare(tree.item_order, *arguments)


PEER = """
import json, sys, time
import numpy as np
import scipy.sparse as sp
sys.path.insert(0, sys.argv[3])
from hierarchies.hierarchy import Hierarchy
from policies.greedypolicy import GreedyPolicy
X = np.load(sys.argv[1])
policy = GreedyPolicy(Hierarchy(sp.csr_matrix(X), json.load(open(sys.argv[2]))))
for line in sys.stdin:
    start = time.process_time()
    value = policy.eval_hier_4_target(int(line), distance_method="euclidean", distance_style="one")[3]
    print("answer", json.dumps([time.process_time() - start, float(value)]), flush=True)
"""


def beside_prototype(checkout: str, n_items: int, n_columns: int, n_sampled: int) -> dict[str, Any]:
    """Time per item of the authors' prototype and of the engine with its conventions, and the value differences."""
    rng = np.random.default_rng(0)
    tree = make_tree(n_items, "dendrogram", rng, None)
    X = make_features(tree, n_columns, "float64", False, rng)
    X *= 0.3  # so that the inverse squared distance tells children apart, and searches go deep
    items = rng.choice(n_items, n_sampled, replace=False)
    children = [tree.children(node).tolist() for node in range(n_items, tree.n_nodes)]
    similarity = InverseSquaredEuclidean(leave_out=True, mean=True, own_singleton=1.0)
    work = lambda: evaluate(X, tree, similarity=similarity, enter_own_singleton=False, threads=1)  # noqa: E731
    evaluated = work()
    theirs, values, ours = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        features, given = Path(folder, "X.npy"), Path(folder, "tree.json")
        np.save(features, X)
        given.write_text(json.dumps(children))
        # The prototype reads its logging settings from, and writes its log to, the working directory.
        shutil.copy(Path(checkout, "logging.conf"), folder)
        Path(folder, "logs").mkdir()
        command = [sys.executable, "-c", PEER, str(features), str(given), str(Path(checkout).resolve())]
        with subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
            for item in items:  # in turns, as in in_turns()
                print(item, file=peer.stdin, flush=True)
                answer = next((line for line in peer.stdout if line.startswith("answer")), None)
                if answer is None:
                    raise SystemExit(f"the prototype in {checkout} ended before it had answered for item {item}")
                seconds, value = json.loads(answer.removeprefix("answer"))
                theirs.append(seconds)
                values.append(value)
                ours.append(median_seconds(work, 7) / n_items)
            peer.stdin.close()
    return {
        "n": n_items,
        "columns": n_columns,
        "prototype_ms_per_item": 1e3 * float(np.median(theirs)),
        "ours_ms_per_item": 1e3 * float(np.median(ours)),
        "ratio": float(np.median(np.array(theirs) / np.array(ours))),
        "moved": int((evaluated.stop_levels[items] > 0).sum()),
        "max_difference": float(np.abs(evaluated.values[items] - values).max()),
    }


def cases(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the cases of the options."""
    fixed = {"columns": options.columns, "dtype": options.dtype, "sparse": options.sparse, "repeats": options.repeats}
    fixed |= {"similarity": options.similarity, "tree": options.tree}
    fixed |= {"memmap": options.memmap, "patient": options.patient}
    result = []
    for n_items in options.sizes:
        for shape in options.shapes:
            for engine in options.engines:
                for threads in options.threads if engine == "numba" else [1]:
                    bare = engine == "numba" and threads == 1 and shape == "dendrogram" and n_items <= 100_000
                    bare = bare and options.similarity == "cosine" and not options.sparse
                    case = {"n": n_items, "shape": shape, "engine": engine, "threads": threads, "bare": bare}
                    result.append({**case, **fixed})
    return result


def show(figures: dict[str, Any]) -> str:
    """One line of the table."""

    def number(key: str, form: str) -> str:
        return format(figures[key], form) if key in figures else "-".rjust(int(form.split(".")[0].strip(",")))

    return (
        f"{figures['n']:>9,} {figures['shape']:<11} {figures['engine']:<6} {figures['threads']:>2} "
        f"{figures['height']:>7} {number('sums_s', '8.3f')} {number('forced_cpu_s', '9.3f')} "
        f"{number('forced_ns', '8.0f')} {number('0.005_cpu_s', '9.3f')} {number('0.005_levels', '7.1f')} "
        f"{number('0.005_items_per_s', '12,.0f')} {number('peak_mb', '8.0f')} {number('bare_cpu_s', '8.3f')}"
    )


def main() -> int:
    """Run the cases, print one line each and write the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hqs_scale", description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=["dendrogram"])
    parser.add_argument("--engines", nargs="+", choices=("numpy", "numba"), default=["numpy", "numba"])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    parser.add_argument("--sparse", action="store_true", help="CSR features, 20 of 43,000 terms an item")
    parser.add_argument("--memmap", action="store_true", help="features in a memory map; its pages count in the peak")
    parser.add_argument(
        "--patient", action="store_true", help="force caterpillars of over 10,000 levels as well: N**2 / 2 steps"
    )
    parser.add_argument("--similarity", default="cosine")
    parser.add_argument(
        "--tree", metavar="FILE", help="children lists in JSON, for one size, instead of a made-up tree"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--pyhqs", metavar="PATH", help="a checkout of the authors' prototype, to run beside")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        case = json.loads(options.case)
        print(json.dumps(beside_prototype(**case) if "checkout" in case else run_case(case)))
        return 0
    if options.quick:
        options.sizes, options.shapes, options.threads, options.repeats = [2_000], list(SHAPES), [1], 1
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} CPUs; CPU seconds")
    print("        n shape       engine  t  height     sums    forced ns/level     0.005  levels      items/s  peak MB"
          "     bare")  # fmt: skip
    results = []
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

    def figures_of(case: dict[str, Any]) -> dict[str, Any]:
        command = [sys.executable, "-m", "benchmarks.hqs_scale", "--case", json.dumps(case)]
        answer = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
        figures: dict[str, Any] = json.loads(answer.splitlines()[-1])
        return figures

    for case in cases(options):
        results.append(figures_of(case))
        print(show(results[-1]), flush=True)
        if "numba_to_bare" in results[-1]:
            print(
                f"{'':>9} forced, in turns: numpy {results[-1]['numpy_to_numba']:.2f} times numba, "
                f"numba {results[-1]['numba_to_bare']:.2f} times the bare kernel",
                flush=True,
            )
    prototype = None
    if options.pyhqs:
        prototype = figures_of(
            {"checkout": options.pyhqs, "n_items": 4_000, "n_columns": options.columns, "n_sampled": 20}
        )
        print(
            f"beside the prototype at {prototype['n']:,} items: {prototype['prototype_ms_per_item']:.1f} ms an item "
            f"against {prototype['ours_ms_per_item']:.6f} ms, in turns {prototype['ratio']:,.0f} times; "
            f"values differ by at most {prototype['max_difference']:.1e}"
        )
    if options.json:
        options.json.write_text(json.dumps({"cases": results, "prototype": prototype}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
