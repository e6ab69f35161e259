"""AndOrTree: a look-ahead as data, with beliefs as OR nodes and actions as AND nodes."""

from collections.abc import Callable, Hashable
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from pomdp_hier._arguments import check_flag, check_integer, unexpected
from pomdp_hier._text import brief, in_html, visible
from pomdp_hier.errors import ParameterError
from pomdp_hier.planning.and_or.markup import render_dot, render_mermaid, render_tikz
from pomdp_hier.planning.and_or.nodes import Grower, Nodes, backed_up, choose
from pomdp_hier.planning.and_or.text import FULL_LIMIT, explain_node, render_text, write_json
from pomdp_hier.planning.rtbss.planner import RTBSS
from pomdp_hier.pomdp.belief import Belief, as_belief
from pomdp_hier.pomdp.numeric import Number
from pomdp_hier.pomdp.problem import POMDP, require_problem

if TYPE_CHECKING:
    import networkx as nx


class AndOrTree(Nodes):
    """The tree of a look-ahead from one belief, in two flat lists; node 0 of ``or_nodes`` is the root.

    Build one with `AndOrTree.build`, or from an `RTBSS` planner with `AndOrTree.from_planner`. Probabilities and
    rewards may be floats, fractions or sympy expressions. Parents precede their children.

    Attributes:
        or_nodes: The `OrNode` s: belief, value, best actions.
        and_nodes: The `AndNode` s: action, reward, Q, and whether it was expanded, pruned or illegal.
        discount: gamma.
        tie_tolerance: The largest difference to the best Q of a tie.

    Example:
        >>> coin = POMDP(
        ...     transition=lambda s, a: s,
        ...     observation=lambda s, a: ({s: 0.75, ("tails" if s == "heads" else "heads"): 0.25}
        ...                               if a == "look" else "nothing"),
        ...     reward=lambda s, a: 0 if a == "look" else (1 if s == a else -1),
        ...     initial_belief={"heads": 0.5, "tails": 0.5},
        ...     legal_actions=["heads", "tails", "look"],
        ... )
        >>> print(AndOrTree.build(coin, depth=1).to_text(ascii_only=True))
        b = (heads, tails)
        (.50, .50)  V 0.00
        |- heads  R 0.00  Q 0.00  *
        |  `- nothing 1.00 -> (.50, .50)  V 0  leaf
        |- tails  R 0.00  Q 0.00  *
        |  `- nothing 1.00 -> (.50, .50)  V 0  leaf
        `- look  R 0.00  Q 0.00  *
           |- heads 0.50 -> (.75, .25)  V 0  leaf
           `- tails 0.50 -> (.25, .75)  V 0  leaf

    References:
        Ross et al. (2008), section 3.1.
    """

    # --- building ------------------------------------------------------------------------------------------------

    @classmethod
    def build(
        cls,
        problem: POMDP,
        belief: Belief | None = None,
        *,
        depth: int,
        leaf_value: Any = "zero",
        upper_bound: Any = "fib",
        prune: bool = False,
        tie_tolerance: float = 0.0,
        updater: Any = None,
        convex: bool = False,
        observation: Hashable = None,
        illegal: bool = False,
        max_nodes: int = 200_000,
    ) -> "AndOrTree":
        """Return the tree of all actions and observations within ``depth`` actions.

        Args:
            problem: The problem.
            belief: The root; the initial belief by default.
            depth: The number of actions to look ahead; without recursion, so that thousands are possible.
            leaf_value, upper_bound, prune, tie_tolerance, updater, convex: As for `RTBSS`; ``prune`` is off by default.
            observation: The observation before the root, where legal actions depend on it.
            illegal: Whether actions that are not legal under a belief get a node as well.
            max_nodes: The largest number of nodes.

        Raises:
            PlanningError: The tree has more than ``max_nodes`` nodes, or a bound is violated.
        """
        planner = RTBSS(
            depth, leaf_value, upper_bound, prune=prune, updater=updater, tie_tolerance=tie_tolerance, convex=convex
        )
        return cls.from_planner(planner, problem, belief, observation=observation, illegal=illegal, max_nodes=max_nodes)

    @classmethod
    def from_planner(
        cls,
        planner: RTBSS,
        problem: POMDP,
        belief: Belief | None = None,
        *,
        observation: Hashable = None,
        illegal: bool = False,
        max_nodes: int = 200_000,
    ) -> "AndOrTree":
        """Return the tree of the planner's search with its pruned actions; equal beliefs are not merged.

        Raises:
            PlanningError: The tree has more than ``max_nodes`` nodes, or a bound is violated.
        """
        require_problem(problem, "AndOrTree")
        check_integer("max_nodes", max_nodes, 1, unit="nodes")
        check_flag("illegal", illegal)
        grower = Grower(planner, problem, illegal, max_nodes)
        grower.grow(problem.initial_belief if belief is None else problem.as_belief(belief), observation)
        return cls(grower.or_nodes, grower.and_nodes, discount=problem.discount, tie_tolerance=planner.tie_tolerance)

    # --- reading -------------------------------------------------------------------------------------------------

    @property
    def value(self) -> Number:
        """The value of the root."""
        return self.or_nodes[0].value

    def __repr__(self) -> str:
        sizes = f"{len(self.or_nodes)} OR nodes, {len(self.and_nodes)} AND nodes"
        return f"<AndOrTree: {sizes}, value {visible(str(self.value))}>"

    def policy(self) -> dict[tuple[Any, ...], Any]:
        """Return the best plan: the action for each history ``(action, observation, …)`` that it can reach.

        Example:
            >>> stay = POMDP(transition=lambda s, a: s, observation=lambda s, a: "same", reward=lambda s, a: 1,
            ...              initial_belief={"here": 1}, legal_actions=["wait"])
            >>> AndOrTree.build(stay, depth=2).policy()
            {(): 'wait', ('wait', 'same'): 'wait'}

        Raises:
            ParameterError: Symbols do not determine the best action.
        """
        plan: dict[tuple[Any, ...], Any] = {}
        stack: list[tuple[int, tuple[Any, ...]]] = [(0, ())]
        while stack:
            position, history = stack.pop()
            node = self.or_nodes[position]
            if node.kind != "internal":
                continue
            if not node.best:
                raise ParameterError(
                    f"problem: got the value {brief(node.value)} after {brief(history)}; expected values that can be "
                    "compared. Substitute numbers for the symbols, and build the tree again."
                )
            best = self.and_nodes[node.best[0]]
            plan[history] = best.action
            stack.extend((i, (*history, best.action, self.or_nodes[i].observation)) for i in reversed(best.outcomes))
        return plan

    def find(self, belief: Belief) -> int:
        """Return the position of the first OR node with this belief.

        Raises:
            ParameterError: No node has it.
        """
        belief = as_belief(belief)
        for i, node in enumerate(self.or_nodes):
            if node.belief == belief:
                return i
        raise ParameterError(
            f"belief: got {brief(belief)}; expected the belief of one of {len(self.or_nodes)} OR nodes."
        )

    def explain(self, node: int | Belief = 0, *, decimals: int = 4, name: Callable[[Any], str] = str) -> str:
        """Return the arithmetic behind each Q of an OR node, given by its position or its belief.

        Raises:
            ParameterError: There is no such node.

        Example:
            >>> stay = POMDP(transition=lambda s, a: s, observation=lambda s, a: "same", reward=lambda s, a: 1,
            ...              initial_belief={"here": 1}, legal_actions=["wait"], discount=0.5)
            >>> print(AndOrTree.build(stay, depth=2).explain())
            belief b = (here) = (1)
            2 actions to go, discount 0.5
              wait: Q = R + γ Σ p·V = 1 + 0.5000·(1·1.0000) = 1.5000 ★   [after same]
            V = max Q = 1.5000
        """
        position = node if isinstance(node, (int, np.integer)) else self.find(node)
        if not 0 <= position < len(self.or_nodes):
            raise unexpected("node", position, f"an OR node from 0 to {len(self.or_nodes) - 1}")
        return explain_node(self, position, decimals=decimals, name=name)

    def backup(self, leaf_value: Callable[[Belief], Number] | None = None) -> "AndOrTree":
        """Return a new tree with all values computed again from rewards, probabilities and leaf values.

        Args:
            leaf_value: The new value of a leaf belief; that of this tree by default. Actions that were pruned stay
                pruned, although their bounds were for the old values.
        """
        or_nodes, and_nodes = [copy(n) for n in self.or_nodes], [copy(n) for n in self.and_nodes]
        for node in reversed(or_nodes):  # outcomes stand after the node above them
            if node.kind == "leaf" and leaf_value is not None:
                node.value = leaf_value(node.belief)
            elif node.kind == "internal":
                expanded = [and_nodes[i] for i in node.actions if and_nodes[i].status == "expanded"]
                for child in expanded:
                    child.q = backed_up(child, or_nodes, self.discount)
                choose(node, and_nodes, self.tie_tolerance)
        return AndOrTree(or_nodes, and_nodes, discount=self.discount, tie_tolerance=self.tie_tolerance)

    # --- other forms ---------------------------------------------------------------------------------------------

    def to_text(
        self,
        *,
        ascii_only: bool = False,
        full: bool = True,
        limit: int = FULL_LIMIT,
        decimals: int = 2,
        name: Callable[[Any], str] = str,
    ) -> str:
        """Return the tree as text, one node per line; ``★`` (or ``*``) marks the best actions on the plan.

        Args:
            ascii_only: Whether to use ASCII characters alone, apart from names.
            full: ``False`` collapses the actions off the plan if there are more than ``limit`` nodes.
            limit: The largest number of nodes to display then.
            decimals: Of floats.
            name: The function that writes states, actions and observations.
        """
        return render_text(self, ascii_only=ascii_only, full=full, limit=limit, decimals=decimals, name=name)

    def to_dot(
        self,
        *,
        full: bool | None = None,
        limit: int = FULL_LIMIT,
        decimals: int = 2,
        name: Callable[[Any], str] = str,
    ) -> str:
        """Return the tree in Graphviz's DOT language; above ``limit`` nodes collapsed to the plan, unless ``full``."""
        return render_dot(self, full=full, limit=limit, decimals=decimals, name=name)

    def to_mermaid(
        self,
        *,
        full: bool | None = None,
        limit: int = FULL_LIMIT,
        decimals: int = 2,
        name: Callable[[Any], str] = str,
    ) -> str:
        """Return the tree as a Mermaid flowchart; above ``limit`` nodes only the plan, unless ``full``."""
        return render_mermaid(self, full=full, limit=limit, decimals=decimals, name=name)

    def to_tikz(
        self,
        *,
        full: bool | None = None,
        limit: int = FULL_LIMIT,
        decimals: int = 2,
        belief: Callable[[Belief], str] | None = None,
        action: Callable[[Any], str] | None = None,
        observation: Callable[[Any], str] | None = None,
        standalone: bool = False,
    ) -> str:
        """Return a TikZ picture: triangles for beliefs, circles for actions, rewards and probabilities at arcs.

        It needs the TikZ libraries ``positioning`` and ``shapes.geometric``, and the package ``amsmath``. Names beyond
        Latin letters need LuaLaTeX or XeLaTeX.

        Args:
            full, limit, decimals: As for `to_dot`.
            belief, action, observation: Functions that return the LaTeX (math mode) of a name, which is not escaped. By
                default beliefs are numbered, and names are escaped text.
            standalone: Whether to return a whole document.
        """
        return render_tikz(
            self,
            full=full,
            limit=limit,
            decimals=decimals,
            belief=belief,
            action=action,
            observation=observation,
            standalone=standalone,
        )

    def to_networkx(self) -> "nx.DiGraph":
        """Return a directed graph of networkx, with nodes ``("or", i)`` and ``("and", i)``.

        Nodes have the fields of ``or_nodes`` and ``and_nodes``. Arcs to OR nodes have ``observation`` and
        ``probability``, and arcs to AND nodes ``action`` and ``reward``.
        """
        import networkx as nx

        graph = nx.DiGraph(discount=self.discount)
        for i, node in enumerate(self.or_nodes):
            graph.add_node(
                ("or", i), belief=node.belief, value=node.value, kind=node.kind, depth=node.depth, best=tuple(node.best)
            )
            if node.parent >= 0:
                graph.add_edge(
                    ("and", node.parent), ("or", i), observation=node.observation, probability=node.probability
                )
        for i, child in enumerate(self.and_nodes):
            graph.add_node(("and", i), action=child.action, q=child.q, status=child.status, upper=child.upper)
            graph.add_edge(("or", child.parent), ("and", i), action=child.action, reward=child.reward)
        return graph

    def to_json(self) -> str:
        """Return the tree as JSON.

        Fractions and expressions stay exact. Names that are not strings, numbers or tuples become text.

        Raises:
            ParameterError: An expression has other functions than sums, products, powers and maxima.
        """
        return write_json(self)

    def _repr_html_(self) -> str:
        """Return the text for a notebook, collapsed to the plan if it is long."""
        text = "\n".join(map(in_html, self.to_text(full=False).split("\n")))
        return f"<pre style='line-height:1.25'>{text}</pre>"
