"""Figures with matplotlib (extra ``plot``), and reports as single HTML files."""

from pomdp_hier.report.action_regions import draw_action_regions
from pomdp_hier.report.belief_plots import draw_alpha_vectors, draw_backups, draw_belief_simplex, draw_belief_trace
from pomdp_hier.report.comparison_page import write_comparison
from pomdp_hier.report.controller_plots import draw_controller
from pomdp_hier.report.page import write_report
from pomdp_hier.report.plan_plots import draw_and_or, draw_bounds, write_teaching_page
from pomdp_hier.report.regroup_page import write_regrouping
from pomdp_hier.report.score_plots import (
    draw_experiment,
    draw_icicle,
    draw_policy_comparison,
    draw_score_curve,
    draw_value_density,
)

__all__ = [
    "draw_action_regions",
    "draw_alpha_vectors",
    "draw_and_or",
    "draw_backups",
    "draw_belief_simplex",
    "draw_belief_trace",
    "draw_bounds",
    "draw_controller",
    "draw_experiment",
    "draw_icicle",
    "draw_policy_comparison",
    "draw_score_curve",
    "draw_value_density",
    "write_comparison",
    "write_regrouping",
    "write_report",
    "write_teaching_page",
]
