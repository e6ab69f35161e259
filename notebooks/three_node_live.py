"""The three-node POMDP with sliders, as a page: ``marimo run notebooks/three_node_live.py``."""

import marimo

app = marimo.App(width="medium", app_title="The three-node POMDP")


@app.cell
def _():
    import marimo as mo

    from pomdp_hier import AndOrTree, three_node
    from pomdp_hier.report import draw_and_or

    return AndOrTree, draw_and_or, mo, three_node


@app.cell
def _(mo):
    mo.md(
        """
        # The three-node POMDP

        A root `c0` with two children. **Search** everything at the root, or **descend** to a child and search there? Descending
        leads to `c1` with probability eta, and the searcher believes with the same probability that the item is there.
        The reward of finding it is `r0`, `r1` or `r2`; a failed search costs 1.
        """
    )
    return


@app.cell
def _(mo):
    eta = mo.ui.slider(0.0, 1.0, 0.05, value=0.8, label="eta", show_value=True)
    r0 = mo.ui.slider(0.0, 1.0, 0.05, value=0.0, label="r0", show_value=True)
    r1 = mo.ui.slider(0.0, 1.0, 0.05, value=0.6, label="r1", show_value=True)
    r2 = mo.ui.slider(0.0, 1.0, 0.05, value=0.6, label="r2", show_value=True)
    mo.vstack([eta, r0, r1, r2])
    return eta, r0, r1, r2


@app.cell
def _(AndOrTree, eta, r0, r1, r2, three_node):
    tree = AndOrTree.build(three_node(eta.value, r0=r0.value, r1=r1.value, r2=r2.value), depth=2)
    search = r0.value
    descend = eta.value**2 * (r1.value + 1) + (1 - eta.value) ** 2 * (r2.value + 1) - 1
    return descend, search, tree


@app.cell
def _(descend, mo, search):
    better = "descend" if descend > search else "search" if search > descend else "either"
    mo.md(
        f"""
        By hand: Q(search) = b (r0 + 1) − 1 = **{search:.3f}**, Q(descend) = b [eta² (r1 + 1) + (1 − eta)² (r2 + 1)] − 1 =
        **{descend:.3f}**, with b = 1. The better action: **{better}**.
        """
    )
    return


@app.cell
def _(draw_and_or, tree):
    draw_and_or(tree).figure
    return


@app.cell
def _(mo, tree):
    mo.vstack([mo.plain_text(tree.to_text()), mo.plain_text(tree.explain())])
    return


if __name__ == "__main__":
    app.run()
