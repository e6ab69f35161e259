"""What people look at: matplotlib figures (extra ``plot``) and the one-file HTML report (no extra)."""

from pomdp_hier.report.and_or import draw_and_or
from pomdp_hier.report.belief_plots import (
    draw_action_regions,
    draw_alpha_vectors,
    draw_backups,
    draw_belief_simplex,
    draw_belief_trace,
)
from pomdp_hier.report.comparison_page import comparison_html, write_comparison
from pomdp_hier.report.controllers import draw_bounds, draw_controller
from pomdp_hier.report.page import report_html, write_report
from pomdp_hier.report.score_plots import (
    draw_delta_sweep,
    draw_icicle,
    draw_level_success,
    draw_levels,
    draw_policy_comparison,
    draw_value_density,
)

__all__ = [
    "comparison_html",
    "draw_action_regions",
    "draw_alpha_vectors",
    "draw_and_or",
    "draw_backups",
    "draw_belief_simplex",
    "draw_belief_trace",
    "draw_bounds",
    "draw_controller",
    "draw_delta_sweep",
    "draw_icicle",
    "draw_level_success",
    "draw_levels",
    "draw_policy_comparison",
    "draw_value_density",
    "report_html",
    "write_comparison",
    "write_report",
]
