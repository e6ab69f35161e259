"""Value iteration backup by backup, with sliders, as a page: ``marimo run notebooks/value_iteration_live.py``."""

import marimo

app = marimo.App(width="medium", app_title="Value iteration, backup by backup")


@app.cell
def _():
    import marimo as mo

    from pomdp_hier.planning.value_iteration import value_iteration
    from pomdp_hier.problems import tiger
    from pomdp_hier.report import draw_action_regions, draw_alpha_vectors

    return draw_action_regions, draw_alpha_vectors, mo, tiger, value_iteration


@app.cell
def _(mo):
    mo.md(
        """
        # Value iteration, backup by backup

        Behind one of two doors is a tiger, behind the other a prize of 10. Listening costs 1 and is correct with the chosen
        probability; the tiger costs 100. Each line is the value of one plan under every belief, and the optimal value is the
        upper envelope. One more step to go is one **backup**. Below are the optimal first actions per belief.
        """
    )
    return


@app.cell
def _(mo):
    # debounce: a figure is drawn once per move, when the slider is released
    steps = mo.ui.slider(1, 8, 1, value=1, label="steps to go", show_value=True, debounce=True)
    accuracy = mo.ui.slider(
        0.55, 0.95, 0.05, value=0.85, label="accuracy of listening", show_value=True, debounce=True
    )
    mo.vstack([steps, accuracy])
    return accuracy, steps


@app.cell
def _(accuracy, tiger, value_iteration):
    problem = tiger(accuracy=accuracy.value)
    plan = value_iteration(problem, 8)
    return plan, problem


@app.cell
def _(draw_action_regions, draw_alpha_vectors, mo, plan, problem, steps):
    now = plan.at_step(plan.horizon - steps.value)
    start = {"tiger-left": 0.5, "tiger-right": 0.5}
    mo.vstack(
        [
            draw_alpha_vectors(now.vectors, actions=now.actions, problem=problem).figure,
            draw_action_regions(now, problem).figure,
            mo.md(f"{len(now.vectors)} vectors; under the uniform belief: {now.action(start)}, worth {now.value(start):.3f}"),
        ]
    )
    return


if __name__ == "__main__":
    app.run()
