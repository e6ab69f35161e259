"""The Hierarchy Quality for Search: the paper's model as an instance of the general framework, and its engine."""

from pomdp_hier.hqs.engine_rules import Clairvoyant, Descend, LookAhead, OneStep, SearchRoot, StoppingRule
from pomdp_hier.hqs.examples import load_amazon12, load_dvd
from pomdp_hier.hqs.guidance import guidance, temperatures
from pomdp_hier.hqs.presets import PAPER_TABLE, PAPER_TEXT
from pomdp_hier.hqs.result import HQSResult
from pomdp_hier.hqs.reward import node_rewards, paper_reward
from pomdp_hier.hqs.score import evaluate, hqs_samples, hqs_score, oracle_value

__all__ = [
    "PAPER_TABLE",
    "PAPER_TEXT",
    "Clairvoyant",
    "Descend",
    "HQSResult",
    "LookAhead",
    "OneStep",
    "SearchRoot",
    "StoppingRule",
    "evaluate",
    "guidance",
    "hqs_samples",
    "hqs_score",
    "load_amazon12",
    "load_dvd",
    "node_rewards",
    "oracle_value",
    "paper_reward",
    "temperatures",
]
