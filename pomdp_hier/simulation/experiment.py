"""Experiments: several policies on several problems, paired, in processes, resumable, with bounds on the optimum."""

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pomdp_hier._arguments import check_text, is_integer, is_real, unexpected
from pomdp_hier._io.formats import held
from pomdp_hier._progress import shown_progress
from pomdp_hier._text import brief, visible
from pomdp_hier.errors import ParameterError
from pomdp_hier.planning.point_based.solution import Solution
from pomdp_hier.planning.point_based.solve import solve
from pomdp_hier.pomdp.problem import POMDP, require_problem
from pomdp_hier.simulation.comparison import compare_policies, compare_values, with_gaps
from pomdp_hier.simulation.comparison_table import (
    ComparisonRow,
    PolicyComparison,
    check_unit,
    latex_table,
    markdown_table,
)
from pomdp_hier.simulation.returns import open_returns

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Experiment:
    """The comparison of policies on each problem.

    Attributes:
        tables: The `PolicyComparison` of each problem, by its name.
        solutions: The `Solution` of each problem, whose bounds give the optimality gaps; empty without bounds.

    Example:
        >>> from pomdp_hier.planning import QMDPPolicy, RTBSS
        >>> from pomdp_hier.problems import tiger
        >>> found = run_experiment({"tiger": tiger()}, {"QMDP": QMDPPolicy(), "RTBSS": RTBSS(depth=1)},
        ...                        method="exact", horizon=2)
        >>> found["tiger"]["RTBSS"].value
        -1.95
    """

    tables: Mapping[str, PolicyComparison]
    solutions: Mapping[str, Solution]

    def __getitem__(self, name: str) -> PolicyComparison:
        if name not in self.tables:
            raise KeyError(f"problem: got {brief(name)}; expected one of {', '.join(map(brief, self.tables))}.")
        return self.tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def __str__(self) -> str:
        return "\n\n".join(f"{visible(name)}\n{table}" for name, table in self.tables.items())

    def rows(self) -> Iterator[tuple[str, ComparisonRow]]:
        """Yield the name of the problem and the row, for each policy on each problem."""
        for name, table in self.tables.items():
            for row in table:
                yield name, row

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per problem and policy as a pandas frame, with the columns of `PolicyComparison.to_frame`.

        Raises:
            MissingExtraError: Pandas is not installed.
        """
        frames = {name: table.to_frame() for name, table in self.tables.items()}
        import pandas as pd

        return pd.concat(frames, names=["problem"])

    def to_markdown(self, *, unit: str = "reward") -> str:
        """Return one table of all problems in Markdown; the greatest value of each problem is bold."""
        header, rows, caption = self._paper(unit)
        return markdown_table(header, rows, caption)

    def to_latex(self, *, unit: str = "reward", caption: str | None = None, label: str | None = None) -> str:
        r"""Return one table of all problems in LaTeX, for ``\usepackage{booktabs}``.

        Args:
            unit: The unit of the values, for the caption.
            caption: The caption; by default, unit, method, sample size and settings.
            label: The label of the table, for ``\ref``.
        """
        header, rows, written = self._paper(unit)
        return latex_table(header, rows, written if caption is None else caption, label, grouped=True)

    def _paper(self, unit: str) -> tuple[list[str], list[list[Any]], str]:
        check_unit(unit)
        header: list[str] = []
        rows: list[list[Any]] = []
        captions = {name: table.paper_caption(unit) for name, table in self.tables.items()}
        first, *others = captions.values()
        common = [part for part in first if all(part in parts for parts in others)]
        texts = [", ".join(common)]
        for name, table in self.tables.items():
            header, body = table.paper_rows()
            rows += [[str(name), *row] for row in body]
            own = [part for part in captions[name] if part not in common]
            texts += [f"{name}: {', '.join(own)}"] if own else []
        return ["problem", *header], rows, "; ".join(texts) + "."


def run_experiment(
    problems: Mapping[str, POMDP],
    policies: Mapping[str, Any | Callable[..., Any]],
    *,
    method: Literal["exact", "monte-carlo"] = "monte-carlo",
    n_episodes: int = 1000,
    seeds: int | Sequence[int] = 0,
    horizon: int | Mapping[str, int | None] | None = None,
    bounds: float | Mapping[str, Solution] | None = None,
    baseline: str | None = None,
    half_width: float | None = None,
    confidence: float = 0.95,
    truncation_error: float = 1e-9,
    n_jobs: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    policy_version: str | None = None,
    progress: bool = False,
) -> Experiment:
    """Return the comparison of policies on each problem, with common random numbers.

    With one seed, the interval of a value is that of the mean over episodes. With several seeds, the value and its
    interval are those of the mean over the seeds. A policy that is built per seed, such as a learned one, then
    contributes its variance.

    Args:
        problems: The problems by name.
        policies: The policies by name. A policy is used for each problem as it is. A function is called with each
            problem, and with the seed if it has a parameter ``seed``, and returns a policy:
            ``lambda problem: solve(problem, time_limit=5).policy``.
        method, n_episodes, baseline, half_width, confidence, truncation_error, n_jobs, policy_version: As for
            `compare_policies`.
        seeds: The seed of the random numbers, or a list of distinct seeds.
        horizon: The greatest number of actions of a run, for all problems or by the name of the problem.
        bounds: CPU seconds of `solve` per problem, or solutions by problem name, for certified bounds on the optimality
            gap; ``None`` for no bounds.
        checkpoint: A file of finished episodes, as for `compare_policies`. The same call continues after a killed
            process. A call with more problems, policies, seeds or episodes runs only those that the file lacks.
        progress: Whether to show a progress bar of comparisons on standard error.

    Raises:
        ParameterError: No problem or policy, a function that returns no policy, or an argument out of range.
        CheckpointError: The file is not such a checkpoint, is damaged, or is in use.

    Example:
        >>> from pomdp_hier.planning import QMDPPolicy
        >>> from pomdp_hier.problems import crying_baby, tiger
        >>> found = run_experiment(
        ...     {"tiger": tiger(), "baby": crying_baby()},
        ...     {"QMDP": QMDPPolicy(), "optimal": lambda problem: solve(problem).controller()},
        ...     bounds=0.1, n_episodes=20)
        >>> [(problem, row.name, row.optimality_gap is not None) for problem, row in found.rows()]
        [('tiger', 'QMDP', True), ('tiger', 'optimal', True), ('baby', 'QMDP', True), ('baby', 'optimal', True)]

        The table and the figure of a paper:

        >>> from pomdp_hier.report import draw_experiment
        >>> found.to_latex(label="tab:policies").count(" & QMDP & ")
        2
        >>> draw_experiment(found)[0].figure.savefig("policies.pdf")  # doctest: +SKIP
    """
    for what, given in (("problems", problems), ("policies", policies)):
        if not isinstance(given, Mapping) or not given:
            raise unexpected(what, given, f"{what} by name, at least one")
    for problem in problems.values():
        require_problem(problem, "run_experiment, as a value of problems")
    if bounds is not None and not (isinstance(bounds, Mapping) or (is_real(bounds) and bounds > 0)):
        raise unexpected("bounds", bounds, "a positive number of CPU seconds, solutions by problem, or None")
    _check_names("bounds", bounds, problems)
    _check_names("horizon", horizon, problems)
    check_text("policy_version", policy_version)
    chosen = _seeds(seeds, method)
    tables: dict[str, PolicyComparison] = {}
    solutions: dict[str, Solution] = {}
    with (
        shown_progress(progress, "experiment", " comparisons", len(problems) * len(chosen)) as bar,
        open_returns(checkpoint) as file,
    ):
        for name, problem in problems.items():
            bar.set_description_str(visible(str(name)), refresh=False)
            actions = horizon.get(name) if isinstance(horizon, Mapping) else horizon
            if isinstance(bounds, Mapping):
                solutions.update({name: bounds[name]} if name in bounds else {})
            elif bounds is not None:
                solutions[name] = solve(problem, horizon=actions, time_limit=float(bounds))
            compared = []
            for seed in chosen:
                table = compare_policies(
                    {label: _built(label, policy, problem, seed) for label, policy in policies.items()},
                    problem,
                    method=method,
                    n_episodes=n_episodes,
                    seed=seed,
                    horizon=actions,
                    truncation_error=truncation_error,
                    baseline=baseline,
                    solution=solutions.get(name),
                    half_width=half_width,
                    confidence=confidence,
                    n_jobs=n_jobs,
                    checkpoint=file,
                    policy_version=policy_version and f"{policy_version}, seed {seed}",
                )
                compared.append(table)
                bar.update()
            tables[name] = compared[0] if len(compared) == 1 else _over_seeds(compared, chosen)
    return Experiment(tables, solutions)


def _seeds(seeds: Any, method: str) -> tuple[int, ...]:
    """Return the seeds, one or at least two different ones."""
    chosen = tuple(held("seeds", seeds)) if isinstance(seeds, Iterable) else (seeds,)
    if not chosen or not all(is_integer(seed) and seed >= 0 for seed in chosen) or len(set(chosen)) < len(chosen):
        raise unexpected("seeds", seeds, "an integer of at least 0, or a list of distinct ones")
    if len(chosen) > 1 and method == "exact":
        raise unexpected("seeds", seeds, "one seed with method='exact', where no number is random")
    return chosen


def _over_seeds(tables: Sequence[PolicyComparison], seeds: tuple[int, ...]) -> PolicyComparison:
    first = tables[0]
    failed = {name: error for table in tables for name, error in table.failed.items()}
    names = [row.name for row in first if row.name not in failed]
    if not names:
        errors = "; ".join(f"{brief(name)} failed ({error})" for name, error in failed.items())
        raise ParameterError(f"policies: got none without an error in some seed: {errors}; expected at least one.")
    merged = compare_values(
        {name: np.array([table[name].value for table in tables]) for name in names},
        baseline=None if first.baseline in failed else first.baseline,
        mdp_value=first.mdp_value,
        confidence=first.confidence,
        seconds={name: float(np.mean([table[name].seconds_per_decision for table in tables])) for name in names},
        error=max(table.error for table in tables),
    )
    sizes = sorted({table.n for table in tables if table.n is not None})  # with half_width, not those asked for
    episodes = " to ".join(map(str, sizes[:1] + sizes[1:][-1:]))
    record = {**first.record, "seed": None, "seeds": " ".join(map(str, seeds)), "episodes": episodes}
    merged = replace(merged, failed=failed, record=record)
    return merged if first.optimum is None else with_gaps(merged, first.optimum)


def _check_names(what: str, given: Any, problems: Mapping[str, POMDP]) -> None:
    """Raise an error for a name that no problem has."""
    unknown = [name for name in given if name not in problems] if isinstance(given, Mapping) else []
    if unknown:
        raise unexpected(what, unknown[0], f"names of problems: {', '.join(map(brief, problems))}")


def _built(name: str, policy: Any, problem: POMDP, seed: int) -> Any:
    """Return the policy for a problem; a function is called with the problem, and perhaps the seed."""
    if hasattr(policy, "decide") and not isinstance(policy, type):
        return policy
    if not callable(policy):
        raise ParameterError(
            f"policies: got {brief(policy)} for {brief(name)}; expected a policy, or a function of the problem that "
            "returns one."
        )
    parameters = _parameters(policy)
    settings = {"seed": seed} if "seed" in parameters else {}
    is_class = isinstance(policy, type)
    shown = f"the class {policy.__name__}" if is_class else brief(policy)
    misfit = ParameterError(
        f"policies: got {shown} for {brief(name)}, which does not take a problem; expected a policy, or a function of "
        f"the problem that returns one. Pass {f'{policy.__name__}(...)' if is_class else 'lambda problem: policy'}."
    )
    try:
        inspect.Signature(list(parameters.values())).bind(problem, **settings)
    except TypeError as error:
        raise misfit from error
    try:
        built = policy(problem, **settings)
    except ParameterError as error:
        if is_class:  # the problem was taken for a number, as by RTBSS
            raise misfit from error
        raise
    if not (hasattr(built, "decide") or callable(built)):
        raise ParameterError(
            f"policies: got {brief(built)} from {brief(name)} of a problem; expected a policy. For a function of the "
            "belief, pass lambda problem: function."
        )
    return built


def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # some builtins have no signature
        return inspect.signature(lambda problem: None).parameters
