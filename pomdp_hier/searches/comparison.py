"""`predicted_and_observed`: where recorded searchers take the correct child, as predicted and as observed."""

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from pomdp_hier._arguments import Floats, Ints, check_choice, check_integer, check_level, generator, is_one_of
from pomdp_hier._imports import as_frame
from pomdp_hier._intervals import bootstrap_interval, share_interval
from pomdp_hier._text import counted
from pomdp_hier.features.items import ItemFeatures
from pomdp_hier.filing.centroids import UnitRows
from pomdp_hier.hierarchy.node_names import NodeNames, label_text
from pomdp_hier.hierarchy.tree import Hierarchy
from pomdp_hier.hqs.guidance import BOUNDS, ChoiceLikelihood
from pomdp_hier.hqs.inputs import Prepared, Run, Settings, prepare
from pomdp_hier.hqs.sampling import Sampling
from pomdp_hier.hqs.score import score
from pomdp_hier.hqs.search_length import lengths_of_items
from pomdp_hier.searches.choices import Choices, Searches, choices_of, require_searches
from pomdp_hier.searches.fit import FITTED

_BLOCK = 1 << 22  # items x categories, or items x samples, of one block


@dataclass(frozen=True)
class Correlation:
    """Spearman's rank correlation, over items, of a figure with an outcome of the searches.

    Attributes:
        predictor: ``"predicted"``, ``"hqs"``, ``"with_return"``, ``"cosine"`` or ``"silhouette"``.
        outcome: ``"observed"``, the share of correct children, or ``"found"``, the share of searches that find.
        rho: The correlation; NaN if a figure is constant or unknown.
        low, high: The confidence interval of ``rho``, by bootstrap over items.
        n_items: The number of items.
    """

    predictor: str
    outcome: str
    rho: float
    low: float
    high: float
    n_items: int


def cosines_and_silhouettes(prepared: Prepared, items: Ints) -> tuple[Floats, Floats]:
    """Return the cosine of each item with the others of its category, and its silhouette; NaN without features.

    The category of an item is its parent. Distances are 1 - cosine, so that their means follow from sums of unit rows.
    """
    unknown = np.full(len(items), np.nan)
    features, tree = prepared.features, prepared.hierarchy
    if not isinstance(features, ItemFeatures) or features.precomputed or not len(items):
        return unknown, unknown.copy()
    units = UnitRows(features.table)
    categories, own = np.unique(tree.parent[: tree.n_items], return_inverse=True)
    n_items, sizes = tree.n_items, np.bincount(own).astype(np.float64)
    member = sp.csr_matrix((np.ones(n_items), (own, np.arange(n_items))), shape=(len(categories), n_items))
    sums = member @ units(np.arange(n_items))
    squares = np.asarray(sums.multiply(sums).sum(axis=1)).ravel() if sp.issparse(sums) else (sums**2).sum(axis=1)
    columns = sums.T.tocsr() if sp.issparse(sums) else sums.T
    cosine, silhouette = unknown.copy(), unknown.copy()
    for low in range(0, len(items), max(1, _BLOCK // len(categories))):
        at = np.arange(low, min(len(items), low + max(1, _BLOCK // len(categories))))
        who = items[at]
        products = units(who) @ columns
        products = products.toarray() if sp.issparse(products) else np.asarray(products)
        rows, home = np.arange(len(who)), own[who]
        self_ = np.where(units.is_zero[who], 0.0, 1.0)
        inside = products[rows, home] - self_
        others = sizes[home] - 1
        length = np.sqrt(np.maximum(squares[home] - 2 * products[rows, home] + self_, 0.0))
        known = (others > 0) & (length > 1e-9)
        cosine[at[known]] = inside[known] / length[known]
        if len(categories) > 1:
            near = 1 - inside / np.maximum(others, 1)
            distances = 1 - products / sizes
            distances[rows, home] = np.inf
            far = distances.min(axis=1)
            largest = np.maximum(near, far)
            ratio = np.divide(far - near, largest, out=np.zeros_like(far), where=largest > 0)
            silhouette[at] = np.where(others > 0, ratio, 0.0)
    return cosine, silhouette


def correlation(
    predictor: str, figure: Floats, outcome: str, shares: Floats, draws: Ints, confidence: float
) -> Correlation:
    """Return a rank correlation over the items that have both figures ``[rows]``.

    The bootstrap samples follow from ``draws``, large random integers ``[samples, rows]``.
    """
    known = ~(np.isnan(figure) | np.isnan(shares))
    n = int(known.sum())
    if n < 3:
        return Correlation(predictor, outcome, math.nan, math.nan, math.nan, n)
    x, y = figure[known], shares[known]
    drawn = draws[:, :n] % n
    bounds = range(0, len(drawn), max(1, _BLOCK // n))
    samples = [_spearman(x[part], y[part]) for part in (drawn[at : at + bounds.step] for at in bounds)]
    low, high = bootstrap_interval(np.concatenate(samples), n, confidence)
    return Correlation(predictor, outcome, float(_spearman(x[None], y[None])[0]), low, high, n)


def _spearman(x: Floats, y: Floats) -> Floats:
    """Return Spearman's rank correlation of each row, ties at their mean rank; NaN if one is constant."""
    from scipy.stats import rankdata  # slow to import, and not needed by a score

    ranks = [rankdata(values, axis=1) for values in (x, y)]
    one, other = (values - values.mean(axis=1, keepdims=True) for values in ranks)
    scale = np.sqrt((one**2).sum(axis=1) * (other**2).sum(axis=1))
    found: Floats = np.divide((one * other).sum(axis=1), scale, out=np.full(len(x), np.nan), where=scale > 0)
    return found


By = Literal["node", "child", "item"]

_SHARED = (
    *("id", "name", "level", "n_choices", "n_correct", "observed", "low", "high", "predicted", "most_similar"),
    *("reliability", "correct_child", "wrong_child", "n_wrong", "suggestion", "misfit"),
)
COLUMNS = {
    "node": _SHARED,
    "child": _SHARED,
    "item": (*_SHARED, "n_searches", "n_found", "hqs", "with_return", "cosine", "silhouette"),
}
"""The columns of `PredictedObserved.to_rows`."""

SUGGESTIONS = {
    "label": "fewer take the correct child than its items suggest: look at its label",
    "place": "people and guidance both prefer another child: look at the place of the item, or at the tree",
    "features": "people are right where the features are not: the features lack what people know",
}
"""What each code of a misfit suggests."""


@dataclass(frozen=True, eq=False)
class Group:
    """The first choices at nodes on the item's path, by node, by correct child or by item.

    Attributes:
        keys: The nodes or items ``[rows]``.
        n_choices: The number of choices ``[rows]``.
        n_correct: The number of choices of the correct child ``[rows]``.
        low, high: The exact interval of the observed share ``[rows]``.
        predicted: The mean guidance to the correct child ``[rows]``.
        most_similar: The share of choices where the correct child is the most similar one ``[rows]``.
        reliability: The reliability of each observed share ``[rows]``.
        overall: The reliability of all observed shares: the share of their variance beyond sampling error. Its square
            root bounds the correlation of any figure with them. NaN if it is unknown.
        correct_child, wrong_child: The most frequent confusion, -1 without one ``[rows]``.
        n_wrong: The number of choices with that confusion ``[rows]``.
        suggestions: The codes of `SUGGESTIONS`, or ``""`` ``[rows]``.
        misfits: The size of the misfit of rows with a suggestion, as a number of choices; else 0 ``[rows]``.
    """

    keys: Ints
    n_choices: Ints
    n_correct: Ints
    low: Floats
    high: Floats
    predicted: Floats
    most_similar: Floats
    reliability: Floats
    overall: float
    correct_child: Ints
    wrong_child: Ints
    n_wrong: Ints
    suggestions: tuple[str, ...]
    misfits: Floats

    @property
    def observed(self) -> Floats:
        """The observed share of the correct child ``[rows]``."""
        return self.n_correct / np.maximum(self.n_choices, 1)


@dataclass(frozen=True, eq=False)
class PredictedObserved:
    """Predicted and observed shares of the correct child, per node and per item.

    Attributes:
        searches: The searches.
        delta, nu: The temperature of the predictions.
        confidence: The level of the intervals.
        nodes: The choices by the node that they are made at.
        children: The choices by the correct child: those at its parent in searches for its items.
        items: The choices by item.
        n_searches: The number of searches for each row of items ``[rows]``.
        n_found: The number of these that end at the item ``[rows]``.
        hqs: The HQS value of each row of items ``[rows]``.
        with_return: The value of each row of items in `expected_search_length` ``[rows]``.
        cosine: The cosine of the item with the other items of its category ``[rows]``; NaN if unknown.
        silhouette: Its silhouette, with cosine distances and categories as clusters ``[rows]``; NaN if unknown.
        correlations: Rank correlations of these figures with the observed shares and the share of found items.
        left_out: The steps that do not count as choices, as text.
    """

    searches: Searches
    delta: float
    nu: float
    confidence: float
    nodes: Group
    children: Group
    items: Group
    n_searches: Ints
    n_found: Ints
    hqs: Floats
    with_return: Floats
    cosine: Floats
    silhouette: Floats
    correlations: tuple[Correlation, ...]
    left_out: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        return f"PredictedObserved({self.sentences()[0]})"

    def group(self, by: By) -> Group:
        """Return the choices by ``"node"``, by the correct ``"child"`` or by ``"item"``.

        Raises:
            ParameterError: ``by`` is none of these.
        """
        check_choice("by", by, tuple(COLUMNS))
        return {"node": self.nodes, "child": self.children, "item": self.items}[by]

    def to_rows(self, by: By = "node", *, names: Any = None) -> list[dict[str, Any]]:
        """Return one row per node, child or item with choices, `COLUMNS`, the largest misfit first.

        Args:
            by: ``"node"``, ``"child"`` or ``"item"``, as for `group`.
            names: Names of items or nodes, as for `write_report`.
        """
        group, tree = self.group(by), self.searches.hierarchy
        called = NodeNames(tree, names, in_words=True)

        def text(node: int) -> str:
            return "" if node < 0 else called[node]

        rows = []
        for at in np.lexsort((-group.n_choices, -group.misfits)).tolist():
            key = int(group.keys[at])
            cells: list[Any] = [
                label_text(key if tree.labels is None else tree.labels[key]),
                called[key],
                int(tree.levels[key]),
                int(group.n_choices[at]),
                int(group.n_correct[at]),
                float(group.observed[at]),
                *(float(column[at]) for column in (group.low, group.high, group.predicted, group.most_similar)),
                float(group.reliability[at]),
                text(int(group.correct_child[at])),
                text(int(group.wrong_child[at])),
                int(group.n_wrong[at]),
                group.suggestions[at],
                float(group.misfits[at]),
            ]
            if by == "item":
                cells += [int(self.n_searches[at]), int(self.n_found[at])]
                cells += [float(column[at]) for column in (self.hqs, self.with_return, self.cosine, self.silhouette)]
            rows.append(dict(zip(COLUMNS[by], cells, strict=True)))
        return rows

    def misfits(self, by: By = "node", limit: int = 10, *, names: Any = None) -> list[dict[str, Any]]:
        """Return the rows with a suggestion, the largest misfit first.

        Args:
            by: As for `group`.
            limit: The largest number of rows.
            names: As for `to_rows`.
        """
        check_integer("limit", limit)
        return [row for row in self.to_rows(by, names=names) if row["suggestion"]][:limit]

    def to_frame(self, by: By = "node", backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """Return `to_rows` as a data frame of ``"pandas"``, ``"polars"`` or ``"pyarrow"``.

        Raises:
            MissingExtraError: The data frame library or narwhals is not installed.
        """
        rows = self.to_rows(by)
        return as_frame({name: [row[name] for row in rows] for name in COLUMNS[by]}, backend)

    def sentences(self) -> list[str]:
        """Return the shares, the reliabilities, the correlations and the number of misfits, one sentence each."""
        nodes, total = self.nodes, max(1, int(self.nodes.n_choices.sum()))
        observed = int(nodes.n_correct.sum()) / total
        predicted = float(nodes.predicted @ nodes.n_choices) / total
        lines = [
            f"correct child: observed {observed:z.1%}, predicted {predicted:z.1%} at delta {self.delta:z.3g}, nu "
            f"{self.nu:z.3g}; {counted(int(nodes.n_choices.sum()), 'first choice')} on the path at "
            f"{counted(len(nodes.keys), 'node')}, for {counted(len(self.items.keys), 'item')}"
        ]
        for what, group in (("nodes", nodes), ("children", self.children), ("items", self.items)):
            if not math.isnan(group.overall):
                lines.append(
                    f"reliability of the observed shares of {what}: {group.overall:z.2f}; no figure can have a larger "
                    f"correlation with them than {math.sqrt(group.overall):z.2f}"
                )
        for outcome, words in (("observed", "the share of correct children"), ("found", "the share of searches found")):
            known = [
                f"{c.predictor.replace('_', ' ')} {c.rho:z.3f} [{c.low:z.3f}, {c.high:z.3f}]"
                for c in self.correlations
                if c.outcome == outcome and not math.isnan(c.rho)
            ]
            if known:
                lines.append(f"rank correlation over items with {words}: {', '.join(known)}")
        for by, several, group in (("child", "children", self.children), ("item", "items", self.items)):
            counts = {code: group.suggestions.count(code) for code in SUGGESTIONS}
            said = [f"{counted(count, by, several)} ({SUGGESTIONS[code]})" for code, count in counts.items() if count]
            if said:
                lines.append("; ".join(said))
        return [
            *lines,
            *([f"not counted as choices: {', '.join(self.left_out)}"] if self.left_out else []),
            *self.searches.notes,
        ]


def predicted_and_observed(
    X: Any,
    hierarchy: Hierarchy,
    searches: Searches,
    *,
    similarity: Any = "cosine",
    delta: float | Literal["fitted"] = "fitted",
    nu: float = 1.0,
    prior: Literal["uniform", "sizes"] | None = None,
    confidence: float = 0.95,
    n_bootstrap: int = 500,
    random_state: int | np.random.Generator | None = 0,
) -> PredictedObserved:
    """Compare predicted with observed shares of searchers who take the correct child, per node, child and item.

    A node has the choices made at it; a child has those in which it is correct. The predicted share is the mean
    guidance to the correct child. The observed share has an exact binomial interval. Only the first choice of a search
    at a node counts, and only at nodes on the path of its item. Reliability is the share of the variance of the
    observed shares that sampling error does not explain: their variance minus the mean ``p (1 - p) / (n - 1)``, divided
    by their variance.

    Rows with a misfit have a suggestion of the cause. ``"label"``: the guidance prefers the correct child, and the
    predicted share is above the interval. ``"place"``: another child is most similar and is also chosen more often.
    ``"features"``: another child is most similar, but the predicted share is below the interval. They are suggestions,
    not tests.

    The result also has four other figures per item: HQS value, search length value, cosine with the other items of its
    category, and silhouette. Each has its rank correlations with the observed shares and with the share of searches
    that find the item.

    Args:
        X: Features ``[N, D]``, or similarities ``[N, N]`` with ``similarity="precomputed"``.
        hierarchy: The tree.
        searches: The result of `read_searches` for this tree.
        similarity, nu: As for `evaluate`.
        delta: The temperature at the root, or ``"fitted"`` for the maximum-likelihood one of these searches.
        prior: As for `fit_delta`.
        confidence: The level of the intervals.
        n_bootstrap: The number of bootstrap samples of items, for the correlations.
        random_state: Seed of the bootstrap.

    Raises:
        FeatureError: The features are unusable.
        ParameterError: A setting is out of range, or the searches are of another tree.

    Example:
        >>> from pomdp_hier import read_searches
        >>> tree = Hierarchy.from_children([[0, 1], [2, 3], [4, 5]], 4)
        >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
        >>> rows = [(person, item, 1, 4 + item // 2) for person in range(9) for item in range(4)]
        >>> row = predicted_and_observed(X, tree, read_searches(rows, tree), delta=0.3).to_rows()[0]
        >>> row["n_correct"], row["observed"], round(row["low"], 3), round(row["predicted"], 3)
        (36, 1.0, 0.903, 0.949)

    References:
        Clopper and Pearson (1934); Spearman (1904), The proof and measurement of association between two things.
        Rousseeuw (1987), Silhouettes: a graphical aid to the interpretation and validation of cluster analysis.
    """
    check_level("confidence", confidence)
    check_integer("n_bootstrap", n_bootstrap, 20)
    fitted = is_one_of(delta, FITTED)
    given: Any = Settings.delta if fitted else delta
    prepared = prepare(X, hierarchy, Settings(similarity=similarity, delta=given, nu=nu))
    choices = choices_of(prepared.affinity, require_searches(searches, hierarchy))
    likelihood = choices.likelihood(nu, choices.prior(prior))
    used = likelihood.maximum(*BOUNDS)[0] if fitted else float(prepared.settings.delta)
    tables = _Tables(choices, likelihood, used, confidence)
    items = tables.group(choices.item)
    of_items = np.bincount(searches.items, minlength=hierarchy.n_items)[items.keys]
    n_found = np.bincount(searches.items[searches.found], minlength=hierarchy.n_items)[items.keys]
    values = score(prepared.under(delta=used), Run(), Sampling()).values[items.keys]
    returning = lengths_of_items(prepared.under(delta=used, policy="descend"), Run(), 0.0, items.keys).values
    cosine, silhouette = cosines_and_silhouettes(prepared, items.keys)
    found = n_found / np.maximum(of_items, 1)
    figures = {"predicted": items.predicted, "hqs": values, "with_return": returning}
    figures |= {"cosine": cosine, "silhouette": silhouette}
    draws = generator("random_state", random_state).integers(1 << 62, size=(n_bootstrap, len(items.keys)))
    return PredictedObserved(
        searches=searches,
        delta=used,
        nu=float(nu),
        confidence=confidence,
        nodes=tables.group(choices.node),
        children=tables.group(choices.children[choices.correct_at] if len(choices) else choices.node),
        items=items,
        n_searches=of_items,
        n_found=n_found,
        hqs=values,
        with_return=returning,
        cosine=cosine,
        silhouette=silhouette,
        correlations=tuple(
            correlation(name, figure, outcome, shares, draws, confidence)
            for outcome, shares in (("observed", items.observed), ("found", found))
            for name, figure in figures.items()
        ),
        left_out=tuple(choices.left_out_lines()),
    )


class _Tables:
    """First choices on the items' paths, to be counted by node or by item."""

    def __init__(self, choices: Choices, likelihood: ChoiceLikelihood, delta: float, confidence: float) -> None:
        self._choices, self._confidence = choices, confidence
        firsts, kept = choices.firsts, (choices.correct_at >= 0) & ~choices.repeated
        self._at = np.flatnonzero(kept)
        correct = choices.correct_at[self._at]
        self._eta = np.exp(likelihood.logs(delta)[self._at] + likelihood.log_odds(delta)[correct])
        best = np.maximum.reduceat(choices.similarities, firsts) if len(choices) else np.empty(0)
        self._guided = choices.similarities[correct] >= best[self._at]
        self._hit = choices.chosen_at[self._at] == correct
        self._correct, self._chosen = choices.children[correct], choices.chosen[self._at]

    def group(self, keys: Ints) -> Group:
        found, owner, n = np.unique(keys[self._at], return_inverse=True, return_counts=True)
        size = len(found)
        hits = np.bincount(owner, self._hit, minlength=size).astype(np.int64)
        low, high = share_interval(hits, n, self._confidence)
        predicted = np.bincount(owner, self._eta, minlength=size) / np.maximum(n, 1)
        guided = np.bincount(owner, self._guided, minlength=size) / np.maximum(n, 1)
        overall, each = _reliability(hits, n)
        correct, wrong, n_wrong, n_right = self._confusions(owner, size)
        prefer_wrong = share_interval(n_wrong, n_wrong + n_right, self._confidence)[0] > 0.5
        right = guided >= 0.5
        rules = (
            ("label", right & (high < predicted), n * (predicted - high)),
            ("place", ~right & prefer_wrong, n_wrong - n_right),
            ("features", ~right & ~prefer_wrong & (low > predicted), n * (low - predicted)),
        )
        codes, misfits = np.full(size, "", dtype=object), np.zeros(size)
        for code, holds, amount in rules:
            codes[holds], misfits[holds] = code, amount[holds]
        return Group(
            keys=found, n_choices=n, n_correct=hits, low=low, high=high, predicted=predicted, most_similar=guided,
            reliability=each, overall=overall, correct_child=correct, wrong_child=wrong, n_wrong=n_wrong,
            suggestions=tuple(codes.tolist()), misfits=misfits,
        )  # fmt: skip

    def _confusions(self, owner: Ints, size: int) -> tuple[Ints, Ints, Ints, Ints]:
        """Return the most frequent confusion of each group: correct and wrong child, and the choices of either."""
        pairs = np.stack([owner, self._correct, self._chosen], axis=1)
        kinds, counts = np.unique(pairs, axis=0, return_counts=True)
        rights = {(group, correct): int(c) for (group, correct, chosen), c in zip(kinds.tolist(), counts, strict=True)
                  if correct == chosen}  # fmt: skip
        best = np.full((4, size), 0)
        best[:2] = -1
        for (group, correct, chosen), count in zip(kinds.tolist(), counts.tolist(), strict=True):
            if correct != chosen and count > best[2, group]:
                best[:, group] = correct, chosen, count, rights.get((group, correct), 0)
        return best[0], best[1], best[2], best[3]


def _reliability(hits: Ints, n: Ints) -> tuple[float, Floats]:
    """Return the reliability of all observed shares, and of each; NaN for fewer than two with two trials.

    Example:
        >>> overall, each = _reliability(np.array([9, 1, 5, 8]), np.array([10, 10, 10, 10]))
        >>> round(overall, 3), each.round(3).tolist()
        (0.873, [0.873, 0.873, 0.873, 0.873])
    """
    several = n > 1
    if several.sum() < 2:
        return math.nan, np.full(len(n), np.nan)
    share, trials = (hits / np.maximum(n, 1))[several], n[several]
    chance = share * (1 - share) / (trials - 1)
    variance = float(share.var(ddof=1))
    between = max(0.0, variance - float(chance.mean()))
    of_one = float((chance * trials).mean())
    each = between / (between + of_one / n) if between + of_one > 0 else np.full(len(n), np.nan)
    return (between / variance if variance > 0 else math.nan), each
