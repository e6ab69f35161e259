"""Which features and similarity explain best where the items are: the likelihood of the model of `find_misfiled`."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from pomdp_hier._arguments import check_choice, check_level, numbered
from pomdp_hier._intervals import mean_interval
from pomdp_hier._text import brief, counted
from pomdp_hier.errors import ParameterError
from pomdp_hier.features.items import item_features
from pomdp_hier.features.validation import Features, row_pieces
from pomdp_hier.filing.misfiled import find_misfiled
from pomdp_hier.filing.model import LEAST_GAIN
from pomdp_hier.filing.result import LEAST_AUC
from pomdp_hier.hierarchy.tree import Hierarchy

SIMILARITIES = ("cosine", "negative_euclidean")
_FAR = 10.0  # of the added column to the length of the rows: from there, cosines are squared distances to 1 %
_SAME = 1e-9


@dataclass(frozen=True)
class FeatureFit:
    """The fit of the filing model to the homes of the items, for one set of features and one similarity.

    Attributes:
        name: The name of the features.
        similarity: The similarity.
        auc: The mean share of the other homes that an item fits less well than its own: 0.5 for random features. An
            item without features counts as 0.5.
        gain: The mean log likelihood of the items' homes minus that of uniformly random homes, in nats per item. An
            item without features counts as 0.
        difference: The gain minus the gain of the best row, in nats per item.
        low: Lower end of the confidence interval of the difference, paired by item.
        high: Upper end of that interval.
        n_without: The number of items without features.
    """

    name: str
    similarity: str
    auc: float
    gain: float
    difference: float
    low: float
    high: float
    n_without: int

    @property
    def verdict(self) -> str:
        """``"best"``, ``"same"`` (equal for each item), ``"worse"``, or ``"inconclusive"`` (0 is in the interval)."""
        if self.difference == 0.0 == self.low == self.high:
            return "best"
        if max(abs(self.low), abs(self.high)) <= _SAME:
            return "same"
        return "worse" if self.high < 0 else "inconclusive"


@dataclass(frozen=True)
class FeatureComparison:
    """A table of features and similarities, the best first.

    Attributes:
        rows: One row per set of features and similarity.
        confidence: The level of the intervals.
    """

    rows: tuple[FeatureFit, ...]
    confidence: float

    def __str__(self) -> str:
        return self.summary()

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one dictionary per row, with its verdict."""
        return [asdict(row) | {"verdict": row.verdict} for row in self.rows]

    def sentences(self) -> list[str]:
        """Return the best features and those not distinguished from them, one sentence each."""
        best = self.rows[0]
        if best.auc < LEAST_AUC or best.gain < LEAST_GAIN:
            return ["None of these features says much about where the items are: a score by them says little, too."]
        close = [_called(row) for row in self.rows[1:] if row.verdict != "worse"]
        beside = f"; not distinguished from it: {', '.join(close)}" if close else ""
        said = [f"{_called(best)} explains best where the items are{beside}."]
        if best.n_without:
            said.append(f"{counted(best.n_without, 'item')} without features there.")
        return said

    def summary(self) -> str:
        """Return the table, followed by its `sentences`, as text."""
        width = max(8, *(len(row.name) for row in self.rows))
        lines = [f"{'features':<{width}}  {'similarity':<18}{'AUC':>7}{'gain':>9}{'to the best':>13}  interval"]
        for row in self.rows:
            beside = "" if row.verdict == "best" else f"[{row.low:+z.4f}, {row.high:+z.4f}] {row.verdict}"
            lines.append(
                f"{row.name:<{width}}  {row.similarity:<18}{row.auc:>z7.3f}{row.gain:>z9.4f}{row.difference:>+z13.4f}  "
                f"{beside}".rstrip()
            )
        return "\n".join([*lines, *self.sentences()])


def compare_features(
    features: Mapping[str, Any],
    hierarchy: Hierarchy,
    *,
    similarities: Sequence[str] = ("cosine",),
    confidence: float = 0.95,
    progress: bool = False,
) -> FeatureComparison:
    """Compare sets of features and similarities by their fit to the homes of the items.

    Run this before you score a tree. Where features do not fit the homes, a low score says more about the features than
    about the tree. The home of an item is the node it is attached to. The model of `find_misfiled` is fitted to each
    set. Its gain is the mean log likelihood of the homes minus that of uniformly random homes, in nats per item. Each
    item is left out of the clusters that it is compared with. The difference to the best set is paired by item. Its t
    interval is for the mean over further items from the same distribution.

    The model needs cosines. For ``"negative_euclidean"``, the rows are centred and get one more column, constant and
    ten times as long as the rows. Then 1 - cosine is proportional to the squared distance, to one percent. Sparse rows
    are not centred.

    Args:
        features: Sets of features ``[N, D]`` by name, each as for `find_misfiled`.
        hierarchy: The tree over the N items.
        similarities: ``"cosine"``, ``"negative_euclidean"``, or both.
        confidence: The level of the intervals.
        progress: Whether to show progress bars.

    Raises:
        FeatureError: Features are not usable, or their ids do not match those of the items.
        ParameterError: Features or similarities are missing, or a similarity is unknown.

    Example:
        >>> import numpy as np
        >>> tree = Hierarchy.from_paths({f"i{k}": "ab"[k % 2] for k in range(40)})
        >>> random = np.random.default_rng(0)
        >>> good = np.eye(2)[np.arange(40) % 2] + random.random((40, 2)) / 4
        >>> found = compare_features({"noise": random.random((40, 2)), "good": good}, tree)
        >>> [(row.name, row.verdict) for row in found.rows]
        [('good', 'best'), ('noise', 'worse')]

    References:
        Student (1908), The probable error of a mean, Biometrika (the interval of paired differences).
    """
    if not isinstance(features, Mapping) or not features:
        raise ParameterError(f"features: got {brief(features)}; expected features by name, such as {{'text': X}}.")
    if isinstance(similarities, str) or not similarities:
        raise ParameterError(f"similarities: got {brief(similarities)}; expected a list, such as ['cosine'].")
    for similarity in similarities:
        check_choice("similarities", similarity, SIMILARITIES)
    check_level("confidence", confidence)
    found = {}
    for name, X in numbered(features.items()).items():
        table = item_features(X, hierarchy, "cosine").table
        for similarity in similarities:
            rows = table if similarity == "cosine" else by_distance(table)
            found[name, similarity] = find_misfiled(rows, hierarchy, progress=progress)
    told = {key: np.nan_to_num(one.log_gains) for key, one in found.items()}
    best = max(told, key=lambda key: float(told[key].mean()))
    fits = []
    for key, one in found.items():
        difference = told[key] - told[best]
        low, high = mean_interval(difference, confidence)
        fits.append(
            FeatureFit(
                *key,
                auc=float(np.where(np.isnan(one.ranks), 0.5, one.ranks).mean()),
                gain=float(told[key].mean()),
                difference=float(difference.mean()),
                low=low,
                high=high,
                n_without=int((one.n_terms == 0).sum()),
            )
        )
    return FeatureComparison(tuple(sorted(fits, key=lambda fit: -fit.gain)), confidence)


def by_distance(table: Features) -> Features:
    """Return rows whose 1 - cosine is proportional to the squared distance of the given rows, to one percent.

    Example:
        >>> rows = by_distance(np.array([[0.0], [1.0], [3.0]]))
        >>> units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        >>> apart = 1 - units @ units.T
        >>> round(float(apart[1, 2] / apart[0, 1]), 1)  # (3 - 1)**2 / (1 - 0)**2
        4.0
    """
    n_items = table.shape[0]
    if sp.issparse(table):
        length = float(np.sqrt(table.multiply(table).sum() / n_items)) or 1.0
        return sp.csr_matrix(sp.hstack([table, np.full((n_items, 1), _FAR * length)], format="csr"))
    rows = np.empty((n_items, table.shape[1] + 1))
    mean = np.mean(table, axis=0, dtype=np.float64)
    for low, high in row_pieces(n_items, 8 * rows.shape[1]):
        rows[low:high, :-1] = table[low:high] - mean
    length = float(np.sqrt(np.einsum("ij,ij->", rows[:, :-1], rows[:, :-1]) / n_items)) or 1.0
    rows[:, -1] = _FAR * length
    return rows


def _called(row: FeatureFit) -> str:
    return row.name if row.similarity == "cosine" else f"{row.name} by {row.similarity}"
