"""The paper's case study: its data and settings, and its figures as printed, expected and computed.

The data are JSON files; their ``source`` states which values are the paper's, computed or invented.

The paper contradicts itself in places, each noted here. Three cells of its Table 1 are misprints: the score of the row
needs the other sign or digit. Two are rounded twice. Some figures of its text are truncated instead of rounded. All
figures need the temperature 0.005, although the text states 0.01.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pomdp_hier._arguments import Floats
from pomdp_hier._imports import attach
from pomdp_hier._text import brief
from pomdp_hier.errors import ParameterError
from pomdp_hier.hierarchy.tree import Hierarchy

if TYPE_CHECKING:
    from pomdp_hier.hqs.model import three_node
    from pomdp_hier.hqs.result import HQSResult

__all__ = ["PAPER_TABLE", "PAPER_TEXT", "load_amazon12", "load_dvd", "reproduce", "three_node"]

__getattr__, __dir__ = attach(__name__, {"pomdp_hier.hqs.model": "three_node"}, globals())  # which loads pomdp-py


@dataclass(frozen=True, eq=False)
class Amazon12:
    """The twelve products of the paper's case study, with the five hierarchies over them.

    Attributes:
        similarity: Cosine similarities of the items, [12, 12], read-only.
        hierarchies: The paper's Hier-A to Hier-E under the keys ``"A"`` to ``"E"``. Node ``12 + k`` is
            the paper's ``c_k``.
        names: One short name per item.
        top_terms: Ten (term, weight) pairs per item, as printed in the paper. The weights are not those of the
            vectors behind ``similarity``.
        categories: The paper's names of some nodes of Hier-A, by node.
        source: The source of each part.
    """

    similarity: Floats
    hierarchies: Mapping[str, Hierarchy]
    names: tuple[str, ...]
    top_terms: tuple[tuple[tuple[str, float], ...], ...]
    categories: Mapping[int, str]
    source: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Amazon12({len(self.names)} items, hierarchies {', '.join(self.hierarchies)})"


@dataclass(frozen=True, eq=False)
class DvdShelf:
    """The DVD hierarchy of the paper's first figure, with invented features.

    Attributes:
        features: The weight of each trait in each film, 0 to 5, [10, 7], read-only; invented.
        traits: The names of the columns.
        hierarchy: Two genres with five subgenres over ten films.
        names: The titles.
        filled_in: The films in place of dots in the figure.
        categories: The names of the genres, by node.
        source: The source of each part.
    """

    features: Floats
    traits: tuple[str, ...]
    hierarchy: Hierarchy
    names: tuple[str, ...]
    filled_in: tuple[int, ...]
    categories: Mapping[int, str]
    source: Mapping[str, str]

    def __repr__(self) -> str:
        return f"DvdShelf({len(self.names)} films, {len(self.traits)} traits)"


@cache
def load_amazon12() -> Amazon12:
    """Return the twelve products of the paper's case study: cosine similarities, names, top terms, Hier-A to Hier-E.

    Example:
        >>> shop = load_amazon12()
        >>> shop.names[0], shop.similarity.shape, shop.hierarchies["A"].n_nodes
        ('Women Boots', (12, 12), 22)

    References:
        Huang, Piao, Moreno, Hurley: POMDP Modelling for Assessing Hierarchies, section 5.1.
    """
    content = _read("amazon12.json")
    return Amazon12(
        similarity=_array(content["similarity"]),
        hierarchies=MappingProxyType(
            {key: Hierarchy.from_children(children, 12) for key, children in content["hierarchies"].items()}
        ),
        names=tuple(content["names"]),
        top_terms=tuple(tuple((term, weight) for term, weight in terms) for terms in content["top_terms"]),
        categories=_by_node(content["categories"]),
        source=MappingProxyType(content["source"]),
    )


@cache
def load_dvd() -> DvdShelf:
    """Return a shelf of ten DVDs on which drama and action are equally similar to Harry Potter.

    Example:
        >>> shelf = load_dvd()
        >>> [shelf.categories[int(node)] for node in shelf.hierarchy.path(0)]
        ['DVD', 'drama', 'fantasy']

    References:
        Huang, Piao, Moreno, Hurley: POMDP Modelling for Assessing Hierarchies, figure 1; features ours.
    """
    content = _read("dvd.json")
    return DvdShelf(
        features=_array(content["features"]),
        traits=tuple(content["traits"]),
        hierarchy=Hierarchy.from_children(content["hierarchy"], len(content["names"])),
        names=tuple(content["names"]),
        filled_in=tuple(content["filled_in"]),
        categories=_by_node(content["categories"]),
        source=MappingProxyType(content["source"]),
    )


def _read(name: str) -> dict[str, Any]:
    text = resources.files("pomdp_hier.hqs").joinpath("data", name).read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def _array(rows: list[list[float]]) -> Floats:
    array = np.array(rows, dtype=np.float64)
    array.setflags(write=False)
    return array


def _by_node(names: dict[str, str]) -> Mapping[int, str]:
    return MappingProxyType({int(node): name for node, name in names.items()})


PAPER_TEXT: Mapping[str, Any] = MappingProxyType({"delta": 0.01, "nu": 1.0, "tie": "search"})
"""Settings of the paper's text: temperature 0.01, and the strict comparison of Algorithm 1, which searches on a tie."""

PAPER_TABLE: Mapping[str, Any] = MappingProxyType({"delta": 0.005, "nu": 1.0, "tie": "descend"})
"""Settings of the paper's Table 1: temperature 0.005, and a tie descends."""


MISPRINT = "misprint"
ROUNDED_TWICE = "rounded twice"
_CUT = "cut off, not rounded"

_PRESETS: Mapping[str, Mapping[str, Any]] = {"table": PAPER_TABLE, "text": PAPER_TEXT}

_PRINTED_ITEMS = {
    "A": ".620 .747 .827 .811 .600 .518 .793 -.679 .562 .432 .812 .817",
    "B": ".0 -.991 -.989 .863 -.955 -.736 .760 .659 -.995 .0 .749 .0",
    "C": "-.752 -.999 .0 .0 .0 .889 .857 -.933 .879 .0 -.965 -.979",
    "D": "-.668 -.740 -.708 -.996 -.652 -1.00 -.791 -.607 -.995 -.925 -.990 -.901",
    "E": ".611 -.797 .673 .0 .533 .0 .834 .0 .423 .0 .835 .808",
}
_OTHERWISE = {
    ("A", 2): (".826451", ROUNDED_TWICE),
    ("C", 10): ("-.964455", ROUNDED_TWICE),
    ("B", 3): ("-.863", MISPRINT),
    ("C", 6): ("-.857", MISPRINT),
    ("D", 7): ("-.807", MISPRINT),
}
_PRINTED_SCORES = {"A": ".5715", "B": "-.2801", "C": "-.3097", "D": "-.8477", "E": ".327"}
_PRINTED_HAI = {"B": ".64", "C": ".46", "D": ".58", "E": ".85"}
_HAI = {"B": ".6389", "C": ".4583", "D": ".5833", "E": ".8542"}
_SCORES = {
    (0.005, "descend"): ".5715 -.2802 -.3097 -.8477 .3266",
    (0.005, "search"): ".5220 -.2802 -.3097 -.8477 .3266",
    (0.01, "descend"): ".4180 -.0535 -.2113 -.4256 .1562",
    (0.01, "search"): ".3918 -.0535 -.2113 -.4256 .1562",
}


@dataclass(frozen=True)
class Figure:
    """One figure of the case study.

    Attributes:
        place: Its place in the paper.
        printed: The printed figure; ``None`` if there is none.
        expected: The figure of a correct implementation, to the checked decimals; ``None`` if unchecked.
        computed: The figure of this package.
        note: The reason why ``printed`` and ``expected`` differ.
    """

    place: str
    printed: str | None
    expected: str | None
    computed: float | str
    note: str = ""

    @property
    def ok(self) -> bool:
        """Whether the computed figure is the expected one."""
        return self.expected is None or self._is(self.expected)

    @property
    def as_printed(self) -> bool:
        """Whether the computed figure is the printed one, to the printed decimals."""
        return self.printed is not None and self._is(self.printed)

    def shown(self, decimals: int | None = None) -> str:
        """Return ``computed`` in the notation of the paper; by default to the checked decimals."""
        if isinstance(self.computed, str):
            return self.computed
        return _tidy(self.computed, _decimals(self.expected or ".000") if decimals is None else decimals)

    def _is(self, figure: str) -> bool:
        if isinstance(self.computed, str):
            return self.computed == figure
        return float(f"{self.computed:z.{_decimals(figure)}f}") == float(figure)


@dataclass(frozen=True)
class Reproduction:
    """The case study under one preset.

    Attributes:
        preset: ``"table"`` or ``"text"``.
        settings: The temperature and the tie rule of the preset.
        scores: The HQS of Hier-A to Hier-E.
        items: The values of the twelve items, by hierarchy.
        hai: The HAI of Hier-B to Hier-E to Hier-A.
        walkthrough: The figures of the paper's text, by heading; empty under ``"text"``.
        elsewhere: The five scores under the other temperatures and tie rules.
    """

    preset: str
    settings: Mapping[str, Any]
    scores: Mapping[str, Figure]
    items: Mapping[str, tuple[Figure, ...]]
    hai: Mapping[str, Figure]
    walkthrough: Mapping[str, tuple[Figure, ...]]
    elsewhere: Mapping[str, tuple[Figure, ...]]

    def sections(self) -> dict[str, tuple[Figure, ...]]:
        """All figures by heading."""
        return {
            "scores": tuple(self.scores.values()),
            "HAI": tuple(self.hai.values()),
            **{f"items of Hier-{name}": figures for name, figures in self.items.items()},
            **self.walkthrough,
            **self.elsewhere,
        }

    def figures(self) -> list[Figure]:
        """All figures in one list."""
        return [figure for figures in self.sections().values() for figure in figures]

    @property
    def failures(self) -> list[Figure]:
        """The figures that differ from their expected value."""
        return [figure for figure in self.figures() if not figure.ok]

    def to_dict(self) -> dict[str, Any]:
        """Return the case study as lists and dictionaries for JSON."""
        return {
            "preset": self.preset,
            "settings": dict(self.settings),
            "checked": sum(figure.expected is not None for figure in self.figures()),
            "ok": not self.failures,
            "figures": [
                {
                    "section": section,
                    "place": figure.place,
                    "printed": figure.printed,
                    "expected": figure.expected,
                    "computed": figure.computed,
                    "as_printed": figure.as_printed,
                    "ok": figure.ok,
                    "note": figure.note,
                }
                for section, figures in self.sections().items()
                for figure in figures
            ],
        }


def reproduce(preset: Literal["table", "text"] = "table") -> Reproduction:
    """Recompute every figure of the paper's case study.

    Args:
        preset: ``"table"`` for the settings of Table 1 (`PAPER_TABLE`), ``"text"`` for those of the text
            (`PAPER_TEXT`).

    Raises:
        ParameterError: The preset is unknown.

    Example:
        >>> study = reproduce()
        >>> study.scores["A"].printed, study.scores["A"].shown(), study.failures
        ('.5715', '.5715', [])

    References:
        Huang, Piao, Moreno, Hurley: POMDP Modelling for Assessing Hierarchies, section 5.1.
    """
    if preset not in _PRESETS:
        raise ParameterError(f"preset: got {brief(preset)}; expected 'table' or 'text'.")
    from pomdp_hier.measures.tree_distances import hai

    settings = _PRESETS[preset]
    shop = load_amazon12()
    results = _results(shop, settings)
    of_table = preset == "table"
    return Reproduction(
        preset=preset,
        settings=settings,
        scores=dict(zip(results, _scores(results, settings, of_table), strict=True)),
        items={name: tuple(_items(name, result, of_table)) for name, result in results.items()},
        hai={
            name: Figure(f"HAI of Hier-{name}", printed, _HAI[name], hai(shop.hierarchies[name], shop.hierarchies["A"]))
            for name, printed in _PRINTED_HAI.items()
        },
        walkthrough=_walkthrough(shop, results) if of_table else {},
        elsewhere={
            f"delta {delta:g}, a tie {_tie_words(tie)}": tuple(
                _scores(_results(shop, {"delta": delta, "tie": tie}), {"delta": delta, "tie": tie}, False)
            )
            for delta, tie in _SCORES
            if (delta, tie) != (settings["delta"], settings["tie"])
        },
    )


def _results(shop: Amazon12, settings: Mapping[str, Any]) -> dict[str, "HQSResult"]:
    from pomdp_hier.hqs.score import evaluate  # which the data do without

    return {
        name: evaluate(shop.similarity, hierarchy, similarity="precomputed", **settings)
        for name, hierarchy in shop.hierarchies.items()
    }


def _scores(results: Mapping[str, "HQSResult"], settings: Mapping[str, Any], of_table: bool) -> Iterable[Figure]:
    expected = _SCORES[settings["delta"], settings["tie"]].split()
    for (name, result), figure in zip(results.items(), expected, strict=True):
        note = f"printed HQS {_CUT}" if of_table and name == "B" else ""
        yield Figure(f"HQS of Hier-{name}", _PRINTED_SCORES[name] if of_table else None, figure, result.score, note)


def _items(name: str, result: "HQSResult", of_table: bool) -> Iterable[Figure]:
    for item, (printed, value) in enumerate(zip(_PRINTED_ITEMS[name].split(), result.values, strict=True)):
        expected, note = _OTHERWISE.get((name, item), (".000" if printed == ".0" else printed, ""))
        place = f"Hier-{name}, item {item}"
        if of_table:
            yield Figure(place, printed, expected, float(value), note)
        else:
            yield Figure(place, None, None, float(value))


def _walkthrough(shop: Amazon12, results: Mapping[str, "HQSResult"]) -> dict[str, tuple[Figure, ...]]:
    """Return the figures of the paper's text, computed from the cosines unless they are values."""
    return {
        f"Hier-A, target 0, {shop.names[0]}": tuple(_target_0(shop, results["A"])),
        f"Hier-A, target 7, {shop.names[7]}": tuple(_target_7(shop, results["A"])),
        "The other hierarchies": tuple(_others(shop, results)),
    }


def _target_0(shop: Amazon12, result: "HQSResult") -> Iterable[Figure]:
    root, inner = _Step(shop, "A", 0, 9), _Step(shop, "A", 0, 4)
    belief = root.eta(7) * _Step(shop, "A", 0, 7).eta(4)
    yield Figure("sim(x0, c7)", ".061", ".0610", root.similarity(7))
    yield Figure("sim(x0, c8)", ".0277", ".0277", root.similarity(8))
    yield Figure("eta(c9, c7)", ".9987", ".9987", root.eta(7), "printed once more, as .9986")
    yield Figure("eta(c9, c8)", ".0013", ".0013", root.eta(8))
    yield Figure("r(c7)", ".6226", ".6225", root.reward(7), "the last digit is off by one")
    yield Figure("Q(b0, search)", "0", ".0000", root.search_value(1.0))
    yield Figure("Q^(b0, descend)", ".6203", ".6183", root.descend_value(1.0), "what is printed is V, cut off")
    yield Figure("sim(x0, c0)", ".06", ".0600", inner.similarity(0))
    yield Figure("sim(x0, c3)", ".061", ".0617", inner.similarity(3), _CUT)
    yield Figure("eta(c4, c0)", ".4158", ".4164", inner.eta(0), "what is printed is the belief, cut off")
    yield Figure("eta(c4, c3)", ".5829", ".5836", inner.eta(3), "what is printed is the belief")
    yield Figure("belief at c0", None, ".4159", belief * inner.eta(0))
    yield Figure("belief at c3", None, ".5829", belief * inner.eta(3))
    yield Figure("stops at", "c4", "c4", _named(result, 0))
    yield Figure("V", ".6203", ".6204", float(result.values[0]), _CUT)


def _target_7(shop: Amazon12, result: "HQSResult") -> Iterable[Figure]:
    root = _Step(shop, "A", 7, 9)
    yield Figure("sim(x7, c7)", ".0367", ".0367", root.similarity(7))
    yield Figure("sim(x7, c8)", ".0297", ".0297", root.similarity(8))
    yield Figure("eta(c9, c8)", None, ".1978", root.eta(8))
    yield Figure("V", "-.679", "-.6791", float(result.values[7]))


def _others(shop: Amazon12, results: Mapping[str, "HQSResult"]) -> Iterable[Figure]:
    values = {name: result.values for name, result in results.items()}
    first, fifth = _Step(shop, "E", 1, 8), _Step(shop, "E", 5, 8)
    yield Figure("B: negative items", "6", "6", _count(values["B"] < 0))
    yield Figure("B: items of value 0", "3", "3", _count(values["B"] == 0))
    yield Figure("C: negative items", "6", "6", _count(values["C"] < 0))
    yield Figure("C: positive items", "2", "2", _count(values["C"] > 0))
    yield Figure("C: V of item 5", ".8892", ".8892", float(values["C"][5]))
    yield Figure("C: V of item 8", ".8789", ".8789", float(values["C"][8]))
    yield Figure("E: negative items", "1", "1", _count(values["E"] < 0))
    yield Figure("E: V of item 1", "-.7972", "-.7972", float(values["E"][1]))
    yield Figure("E: eta(c8, c7) of item 1", ".8894", ".8894", first.eta(7))
    yield Figure("E: sim(x5, c6)", ".0379", ".0379", fifth.similarity(6))
    yield Figure("E: sim(x5, c7)", ".0375", ".0375", fifth.similarity(7))
    yield Figure("E: item 5 stops at", "c8", "c8", _named(results["E"], 5), "the root")
    ranked = "".join(sorted(results, key=lambda name: -results[name].score))
    yield Figure("from best to worst", "AEBCD", "AEBCD", ranked)
    largest = float(np.max(shop.similarity - np.eye(len(shop.names))))
    yield Figure("largest cosine, items 1, 8", ".11", ".1153", largest, 'printed: "around 0.11"')


class _Step:
    """Similarities, guidance and rewards at node ``c_k`` of the search for an item; nodes are numbered by ``k``."""

    def __init__(self, shop: Amazon12, name: str, item: int, k: int) -> None:
        self._tree: Hierarchy = shop.hierarchies[name]
        self._cosines = shop.similarity[item]
        self._item = item
        self._k = k
        self._children = (self._tree.children(self._tree.n_items + k) - self._tree.n_items).tolist()

    def similarity(self, k: int) -> float:
        """Return the mean cosine to the other items of a child."""
        items = self._tree.items(self._tree.n_items + k)
        return float(np.mean(self._cosines[items[items != self._item]]))

    def eta(self, k: int) -> float:
        """Return the probability of moving to a child."""
        from pomdp_hier.hqs.guidance import guidance

        similarities = [self.similarity(child) for child in self._children]
        return float(guidance(similarities, PAPER_TABLE["delta"])[self._children.index(k)])

    def reward(self, k: int) -> float:
        """Return the reward of finding the item in a node."""
        from pomdp_hier.hqs.guidance import paper_reward

        return float(paper_reward(self._tree.sizes[self._tree.n_items + k], self._tree.n_items))

    def search_value(self, belief: float) -> float:
        """``Q(b, search) = b (r(c) + 1) - 1``."""
        return belief * (self.reward(self._k) + 1) - 1

    def descend_value(self, belief: float) -> float:
        """``Q^(b, descend) = sum over c' of eta(c, c') (eta(c, c') b (r(c') + 1) - 1)``."""
        etas = {k: self.eta(k) for k in self._children}
        return sum(eta * (eta * belief * (self.reward(k) + 1) - 1) for k, eta in etas.items())


def _named(result: "HQSResult", item: int) -> str:
    """Return the paper's name of the stop node of an item."""
    return f"c{result.stop_nodes[item] - len(result.values)}"


def _count(which: Any) -> str:
    return str(int(np.count_nonzero(which)))


def _tie_words(tie: str) -> str:
    return {"descend": "descends", "search": "searches"}[tie]


def _decimals(figure: str) -> int:
    return len(figure.partition(".")[2])


def _tidy(number: float, decimals: int) -> str:
    """Return a number in the notation of the paper: no zero before the point, no minus before a zero."""
    text = f"{number:z.{decimals}f}"
    sign = "-" if text.startswith("-") else ""
    digits = text.lstrip("-")
    return sign + (digits.removeprefix("0") if "." in digits else digits)
