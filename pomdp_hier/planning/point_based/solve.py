"""`solve`: converging lower and upper bounds on the optimal value of a problem."""

import math
import os
import signal
import threading
import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Literal

import numpy as np

from pomdp_hier._arguments import Floats, check_choice, check_flag, check_kind, is_integer, is_real, unexpected
from pomdp_hier._imports import is_installed, pays, uncollected
from pomdp_hier._io.formats import memory_available
from pomdp_hier._progress import StoppedEarlyError, leaving, never, shown_progress
from pomdp_hier.errors import Argument, MissingExtraError, ParameterError, PlanningError, PomdpHierWarning, warn_user
from pomdp_hier.planning.float_range import horizon_sum, require_float_range
from pomdp_hier.planning.point_based import on_numpy
from pomdp_hier.planning.point_based.initial_bounds import InitialBounds, initial_bounds
from pomdp_hier.planning.point_based.model_arrays import SolverModel, solver_model
from pomdp_hier.planning.point_based.saved_search import SavedSearch, open_search, settings_of
from pomdp_hier.planning.point_based.search import Search, finite_stages, infinite_stage
from pomdp_hier.planning.point_based.solution import Progress, Solution
from pomdp_hier.pomdp.numeric import is_nonnegative
from pomdp_hier.pomdp.problem import POMDP, require_problem

Engine = Literal["auto", "numpy", "numba"]

_STAGE_BYTES = 8_000  # of a stage of the smallest problem
_UNREACHABLE = 1e-9  # relative gap at which to stop where floats cannot represent the precision
_SECONDS = 4e-4  # CPU seconds of a search with numpy, per outcome (entry of T times Z)
_MORE = 0.05  # of the time limit, which the last evaluation of the controller may take more
_MORE_SECONDS = 0.1
_ENTRIES_PER_SECOND = 10_000_000  # of the matrix of an evaluation
_LAST_SECONDS = 0.25  # which reading a problem's functions may take more at least, as there is no bound before
_BEFORE_TIB = 250_000_000  # products of the trials before TIB takes turns: half a second, of which it needs more to end
_LONG_STEP = 3_000_000  # products of a step of TIB, about a hundredth of a second
_NUMBA_FILE = Path(__file__).with_name("on_numba.py")
COMPILATION = {  # CPU seconds, of the loops in `on_numba`
    **{"expand": 2.7, "expectations": 0.4, "greatest": 0.4},
    **{"improve_upper": 0.7, "improve_lower": 0.6, "backup": 0.2},
}


def solve(
    problem: POMDP,
    *,
    belief: Any = None,
    observation: Hashable = None,
    horizon: int | None = None,
    precision: float = 1e-2,
    time_limit: float | None = None,
    memory_limit: float | None = None,
    max_trials: int | None = None,
    engine: Engine = "auto",
    resume: Solution | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> Solution:
    """Return a lower and an upper bound on the optimal value, with a policy and a certificate.

    The lower bound is a set of alpha vectors, the values of finite-state controllers. The upper bound interpolates
    belief points by the sawtooth projection. A heuristic search improves both at the beliefs that optimal policies
    reach. It can be stopped at any time, by a limit or by Ctrl-C, and then returns its current bounds. The same input
    and engine give the same bounds after the same number of trials.

    A discount of 1 needs a horizon, or a process that terminates after n actions under every policy.

    Args:
        problem: The problem, of numbers that floats can represent.
        belief: The start belief, a `Belief` or a dict; by default the initial belief.
        observation: The last observation, where legal actions depend on it.
        horizon: The number of actions; ``None`` for an infinite horizon.
        precision: The gap between the bounds at which to stop, in the unit of rewards. A precision below the spacing of
            floats near the values cannot be reached; the search then stops at a relative gap of 1e-9.
        time_limit: CPU seconds of this process, from the call on; then the search stops with its current bounds. The
            last evaluation of the controller may take another 5 %, or 0.1 s. A large model has bounds of its underlying
            MDP and of blind policies before its outcomes are laid out. A checkpoint is read whatever the limit.
        memory_limit: The largest memory of the search, in bytes. Where the outcomes of a large model take more, the
            bounds are those of the underlying MDP and of blind policies.
        max_trials: The largest number of searches from the start belief.
        engine: ``"numba"`` for compiled inner loops, ``"numpy"``, or ``"auto"``: numba where it is installed and pays,
            compilation included. Both give the same bounds up to rounding.
        resume: A solution of the same problem, horizon and start, whose search is continued; it is not changed.
        checkpoint: A file to which the search is written at intervals and at its end. The same call continues from it,
            also after a killed process. Its numbers are checked against the problem, so that an untrusted file cannot
            cause a false bound. `Solution.save` writes one, and ``max_trials=0`` reads it alone.
        progress: Whether to show a progress bar with both bounds on standard error.

    Raises:
        ParameterError: An argument is out of range, or a solution to resume is of another problem.
        CheckpointError: The file is of another problem, horizon or start, is damaged, or is in use.
        ModelError: The problem cannot be bounded. Values may grow without bound, or legal actions depend on the belief.
            Or a number is not finite or too large for floats, or a reachable belief has no legal action.
        PlanningError: The start belief is terminal. Or a limit was reached before the first bound: while functions were
            read into arrays, or outcomes were laid out for legal actions by observation.
        MissingExtraError: The engine is ``"numba"``, which is not installed.

    Example:
        >>> from pomdp_hier.problems import tiger
        >>> solution = solve(tiger(), precision=1e-3)
        >>> round(solution.lower, 2), round(solution.upper, 2), solution.status
        (19.37, 19.37, 'converged')

    References:
        Smith and Simmons (2005), HSVI2; Kurniawati, Hsu and Lee (2008), SARSOP; Krale et al. (2025), TIB, the initial
        upper bound.
    """
    require_problem(problem, "solve")
    _check(horizon, precision, time_limit, memory_limit, max_trials, engine, progress)
    if resume is not None and checkpoint is not None:
        raise ParameterError("resume: got a solution and a checkpoint; expected only one of the two. Leave out resume.")
    limits = _Limits(precision, time_limit, memory_limit, max_trials, time.process_time())
    start = problem.initial_belief if belief is None else problem.as_belief(belief)
    with _needed_for_any_bound(limits, "to read its functions into arrays; reading problem.compiled first does that"):
        compiled = problem.compiled
    # Points of a checkpoint may rest on the first bounds: these are complete then, and not cut off.
    saved_before = _is_file(checkpoint)
    first = replace(limits, time_limit=None) if saved_before else limits
    with limits.interruptible(), _needed_for_any_bound(limits, "to lay out its outcomes"):
        model = solver_model(compiled, compiled.vector(start), observation, first.stop)
    weights = model.weights(start, observation)
    if not weights.any():
        raise PlanningError("belief: got terminal states alone; expected one that is not terminal. The value is 0.")
    if horizon is None:  # `slack` raises for a problem whose values may grow indefinitely
        require_float_range(compiled, float(model.slack.max()))
    else:
        _check_stages(horizon, model)
        require_float_range(compiled, horizon_sum(model.shrink, horizon))
    settings = {} if resume is None and checkpoint is None else settings_of(problem, horizon, start, observation)
    if resume is not None:
        _check_resumed(resume, settings)
    history: list[Progress] = []
    closer: Iterator[InitialBounds] = iter(())
    initial = None
    with limits.interruptible(), _needed_for_any_bound(limits, "to lay out its outcomes"):
        if horizon is None:
            closer = _available(initial_bounds(model, first.stop, first.most_bytes))
            longest = math.inf if saved_before else _LONG_STEP
            initial = _begin(closer, longest, model, weights, limits, history)
        else:
            _lay_out_stages(model, first)
    kernels: ModuleType = on_numpy
    with limits.interruptible(at_once=True), uncollected:
        kernels = _kernels(engine, model, limits)
    with (
        limits.interruptible(),
        shown_progress(progress, "bounds", " trials") as bar,
        open_search(checkpoint) as file,
    ):
        if initial is None:
            stages = finite_stages(model, kernels, horizon or 0, first.stop)
        else:
            stages = infinite_stage(model, kernels, initial)
        search = Search(model, kernels, weights, stages, limits.most_bytes, limits.stop)
        search.most_entries = min(search.most_entries, _ENTRIES_PER_SECOND * limits.more)
        if resume is not None:
            search = resume.search.continued(search)
            if search.stages[-1].rests_on is not None:
                closer = iter(())
            elif initial is not None and bool((initial.informed <= search.stages[-1].informed).all()):
                search.tighten(initial)
        saved = None if file is None else SavedSearch(file, search, settings)
        try:
            with _needed_for_any_bound(limits, "to lay out its outcomes"):
                status = _run(search, initial, closer, limits, history, bar, saved)
        finally:
            search.stop = never
            if saved is not None and (search.trials or not saved.restored):
                saved.write()
    return Solution(
        *search.bounds,
        status=status,
        history=tuple(history),
        problem=problem,
        horizon=horizon,
        belief=None if belief is None and observation is None else start,
        observation=observation,
        search=search,
    )


@contextmanager
def _needed_for_any_bound(limits: "_Limits", what: str) -> Iterator[None]:
    """Turn an early stop in the block into an error: any bound needs this work."""
    try:
        with leaving(lambda: limits.left <= -max(_LAST_SECONDS, _MORE * (limits.time_limit or 0.0))):
            yield
    except StoppedEarlyError:
        if limits.pressed:
            raise KeyboardInterrupt from None
        name, value = ("time_limit", limits.time_limit) if limits.left <= 0 else ("memory_limit", limits.memory_limit)
        raise PlanningError(
            Argument(name),
            f": got {value}; expected enough for a first bound of this problem, {what}. Raise ",
            Argument(name),
            ".",
        ) from None


def _available(closer: Iterator[InitialBounds]) -> Iterator[InitialBounds]:
    """Yield initial bounds until outcomes exceed the available memory, with a warning if there are bounds before."""
    last = None
    try:
        for last in closer:
            yield last
    except PlanningError as error:
        if last is None:
            raise
        _warn_of_memory(error)


def _lay_out_stages(model: SolverModel, limits: "_Limits") -> None:
    """Lay out the outcomes for a finite horizon; a large model can have bounds without them."""
    try:
        model.lay_out(limits.stop, limits.most_bytes)
    except StoppedEarlyError:
        if not model.has_early_steps:
            raise
    except PlanningError as error:
        if not (model.has_early_steps and model.is_large):
            raise
        _warn_of_memory(error)


def _warn_of_memory(error: PlanningError) -> None:
    bounds = " The bounds are those of the underlying MDP and of blind policies."
    warn_user([f"{error}{bounds}"], PomdpHierWarning)


def _is_file(checkpoint: Any) -> bool:
    return isinstance(checkpoint, str | os.PathLike) and os.path.exists(checkpoint)


def _check(
    horizon: Any, precision: Any, time_limit: Any, memory_limit: Any, max_trials: Any, engine: str, progress: Any
) -> None:
    """Raise an error for arguments out of range."""
    if horizon is not None and not (is_integer(horizon) and horizon >= 1):
        raise unexpected("horizon", horizon, "an integer of at least 1, or None")
    if not is_nonnegative(precision):
        raise unexpected("precision", precision, "a gap of at least 0, in the unit of rewards")
    limits = {"time_limit": time_limit, "memory_limit": memory_limit}
    for name, value in limits.items():
        if value is not None and not (is_real(value) and value >= 0):
            raise unexpected(name, value, "a number of at least 0, or None for no limit")
    if max_trials is not None and not (is_integer(max_trials) and max_trials >= 0):
        raise unexpected("max_trials", max_trials, "an integer of at least 0, or None for no limit")
    check_flag("progress", progress)
    check_choice("engine", engine, ("auto", "numpy", "numba"))


def _check_resumed(resume: Any, settings: dict[str, Any]) -> None:
    """Raise an error unless the solution is one of the same problem, horizon and start."""
    check_kind("resume", resume, Solution, "the result of solve")
    own = resume.settings
    for name, value in settings.items():
        if own[name] != value:
            raise ParameterError(
                f"resume: got a solution of another {name}; expected one of this problem, horizon and start. Leave it "
                "out."
            )


def _check_stages(horizon: int, model: SolverModel) -> None:
    """Raise an error for a horizon whose stages, one per action, exceed the available memory."""
    most = memory_available() // (_STAGE_BYTES + 3 * model.reward.nbytes)
    if horizon > most:
        raise unexpected("horizon", horizon, f"at most {most:,} actions, as memory allows")


def _kernels(engine: str, model: SolverModel, limits: "_Limits") -> ModuleType:
    """Return the module of the inner loops, loaded and compiled."""
    seconds = min(model.n_outcomes * _SECONDS, limits.left)
    if (
        not model.is_laid_out
        or engine == "numpy"
        or (engine == "auto" and (limits.stop() or not pays(seconds, _NUMBA_FILE, COMPILATION)))
    ):
        return on_numpy
    if not is_installed():
        raise MissingExtraError(
            "engine: got 'numba'; expected numba to be installed. Run pip install 'pomdp-hier[fast]'."
        )
    from pomdp_hier.planning.point_based import on_numba

    tiny = solver_model(_TINY.compiled)
    *_, initial = initial_bounds(tiny)
    Search(tiny, on_numba, np.ones(2) / 2, infinite_stage(tiny, on_numba, initial)).trial()
    return on_numba


_TINY = POMDP.from_arrays(T=[[[0.5, 0.5]] * 2] * 2, Z=[[[0.8, 0.2], [0.3, 0.7]]] * 2, R=[[1, 0], [0, 1]], discount=0.5)
"""A problem on which the loops are compiled, before a trial that has to end in time."""


@dataclass(frozen=True)
class _Limits:
    """The limits of a search.

    Attributes:
        pressed: Has an entry after Ctrl-C was pressed.
    """

    precision: float
    time_limit: float | None
    memory_limit: float | None
    max_trials: int | None
    began: float
    pressed: list[int] = field(default_factory=list)

    @property
    def most_bytes(self) -> float:
        """The memory limit in bytes."""
        return math.inf if self.memory_limit is None else self.memory_limit

    @property
    def seconds(self) -> float:
        """CPU seconds since the start."""
        return time.process_time() - self.began

    @property
    def left(self) -> float:
        """CPU seconds until the time limit."""
        return math.inf if self.time_limit is None else self.time_limit - self.seconds

    def stop(self) -> bool:
        """Return whether to leave whatever is being computed."""
        return bool(self.pressed) or self.left <= 0

    @property
    def more(self) -> float:
        """CPU seconds that the last evaluation of the controller may take after the limit."""
        return math.inf if self.time_limit is None else max(_MORE_SECONDS, _MORE * self.time_limit)

    def stop_last(self) -> bool:
        """Return whether to leave the last evaluation, which may take a little longer than the limit."""
        return bool(self.pressed) or self.left <= -self.more

    def reached(self, search: Search) -> str | None:
        """Return the code of the limit that is reached, or ``None`` to continue."""
        lower, upper = search.bounds
        if self.pressed:
            return "interrupted"
        if upper - lower <= self.precision:
            return "converged"
        values = max(abs(lower), abs(upper), search.mass * search.stages[-1].scale)
        if search.is_stuck or (0 < self.precision < math.ulp(values) and upper - lower <= _UNREACHABLE * values):
            return "rounding"
        if self.max_trials is not None and search.trials >= self.max_trials:
            return "trials"
        if self.left <= 0:
            return "time"
        if search.n_bytes >= self.most_bytes or not search.model.is_laid_out:
            return "memory"
        return None

    @contextmanager
    def interruptible(self, *, at_once: bool = False) -> Iterator[None]:
        """Let Ctrl-C end the search as a limit does; a second Ctrl-C ends it at once.

        Args:
            at_once: Whether the first Ctrl-C leaves the block, as while numba is being loaded or compiled. Python drops
                an exception in a finalizer; then the search ends after the block.
        """

        def press(number: int, frame: FrameType | None) -> None:
            again = bool(self.pressed)
            self.pressed.append(number)
            if at_once or again:
                raise KeyboardInterrupt

        usual = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        )
        if usual:
            signal.signal(signal.SIGINT, press)
        try:
            yield
        except KeyboardInterrupt:
            if not at_once:
                raise
            self.pressed.append(signal.SIGINT)
        finally:
            if usual:
                signal.signal(signal.SIGINT, signal.default_int_handler)


def _begin(
    closer: Iterator[InitialBounds],
    longest: float,
    model: SolverModel,
    weights: Floats,
    limits: _Limits,
    history: list[Progress],
) -> InitialBounds:
    """Add the initial bounds to the history, up to a longer step of TIB, and return the last ones."""
    for initial in closer:
        lower, upper = initial.at(weights, model.slack)
        if history:  # a bound that only rounding made worse
            lower, upper = max(lower, history[-1].lower), min(upper, history[-1].upper)
        if lower > -np.inf and (not history or (history[-1].lower, history[-1].upper) != (lower, upper)):
            history.append(Progress(limits.seconds, 0, lower, upper, initial.n_bytes))
        if initial.work > longest:
            break
    return initial


def _run(
    search: Search,
    initial: InitialBounds | None,
    closer: Iterator[InitialBounds],
    limits: _Limits,
    history: list[Progress],
    bar: Any,
    saved: SavedSearch | None = None,
) -> str:
    """Search until a limit is reached, and return its code; add the bounds to the history.

    While TIB is being computed, its steps and the trials take turns, once the trials have had a first share.
    """
    search.begin()
    if not search.model.is_laid_out and search.bounds[0] == -math.inf:
        raise StoppedEarlyError
    status, work, before = None, 0, _BEFORE_TIB
    if initial is not None and initial.of_tib:
        work, before = before, 0
    while True:
        lower, upper = search.bounds
        if not history or (history[-1].lower, history[-1].upper) != (lower, upper):
            history.append(Progress(limits.seconds, search.backups, lower, upper, search.n_bytes))
        if status is not None:
            return status
        status = limits.reached(search)
        if status not in ("converged", "memory") and (status is not None or work <= search.work):
            initial = next(closer, None)
            if initial is not None:
                if initial.work:
                    work += initial.work
                    if initial.of_tib:
                        work, before = work + before, 0
                else:
                    search.tighten(initial)
                status = None
                continue
        if status is None:
            with suppress(StoppedEarlyError):
                search.trial()
            if saved is not None:
                saved.write_if_due()
        elif status not in ("interrupted", "memory"):
            search.stop = limits.stop_last
            search.finish()
        bar.set_postfix_str(f"[{lower:.6g}, {upper:.6g}]", refresh=False)
        bar.update()
