"""Data and settings of the paper: twelve products under five hierarchies, and a shelf of DVDs.

The data are JSON files beside this module. Their ``source`` states which values are the paper's, computed or invented.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

import numpy as np

from pomdp_hier._arrays import Floats
from pomdp_hier.hierarchy.tree import Hierarchy


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
    text = resources.files("pomdp_hier.hqs.paper").joinpath("data", name).read_text(encoding="utf-8")
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
