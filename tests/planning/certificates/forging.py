"""Forgeries: fields, stages, units and starts of certificates are changed, then the tightest bounds are claimed."""

import contextlib
import copy
from fractions import Fraction
from math import ceil, floor

import numpy as np

from pomdp_hier.errors import CertificateError
from pomdp_hier.planning import solve, verify
from tests.planning.certificates.limits import Certificate, Table

BROKEN = (TypeError, KeyError, IndexError, ValueError, OverflowError, ZeroDivisionError)
KINDS = {
    "infinite horizon": ({}, None),
    "costs, terminal": ({"terminal": True, "costs": True, "discount": Fraction(1, 3)}, None),
    "legal by state": ({"legal": "some"}, None),
    "legal by observation": ({"legal": "observation"}, 2),
    "horizon": ({"discount": Fraction(1, 3), "legal": "some"}, 3),
    "horizon, discount 1": ({"discount": Fraction(1)}, 2),
    "horizon, discount 1, terminal": ({"discount": Fraction(1), "terminal": True}, 2),
    "terminates, discount 1": ({"discount": Fraction(1), "acyclic": True}, None),
}


def originals(kind, seed):
    """A problem, its horizon, an exact interval of its optimal value, and certificates of it."""
    settings, horizon = KINDS[kind]
    table = Table(seed, **settings)
    made = [solve(table.problem, horizon=horizon, max_trials=trials, precision=0.1).certificate() for trials in (1, 20)]
    if kind not in ("legal by observation", "terminates, discount 1"):
        bits = int(np.random.default_rng(seed).integers(0, 8))
        made.append(Certificate(table, horizon, seed, value_bits=bits, weight_bits=2).top)
    return table, horizon, table.interval(horizon), made


class Forger:
    """Random changes of a certificate, with the tightest bounds that the changed numbers give at the start."""

    def __init__(self, table, others, rng):
        self.table, self.others, self.rng = table, others, rng
        self.kinds = (
            self.number,
            self.shift,
            self.units,
            self.start,
            self.horizon,
            self.stage,
            self.entry,
            self.belief,
        )

    def forged(self, certificate):
        changed = copy.deepcopy(certificate)
        kinds = [self.kinds[int(k)] for k in self.rng.choice(len(self.kinds), size=int(self.rng.choice([1, 1, 2])))]
        for change in (*kinds, self.claim):
            with contextlib.suppress(*BROKEN):  # an earlier change broke the form
                change(changed)
        return changed, [kind.__name__ for kind in kinds]

    def pick(self, entries):
        return entries[int(self.rng.integers(len(entries)))]

    def step(self):
        return int(self.pick([1, -1, 1, -1, 2, -2, 2**10, -(2**10), 2**40, -(2**40), 2**44, -(2**44)]))

    def number(self, c):
        """One number."""
        where = [
            (holder, key) for holder, key in self.slots(c) if type(holder[key]) is int and key not in ("lower", "upper")
        ]
        holder, key = self.pick(where)
        holder[key] += self.step()

    def slots(self, value):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, entry in pairs:
            yield value, key
            if isinstance(entry, dict | list):
                yield from self.slots(entry)

    def shift(self, c):
        """All bounds of one kind, by the same."""
        step, kind = self.step(), self.pick(["vectors", "informed", "outcomes", "corners", "points", "above"])
        for stage in c["stages"]:
            if kind == "vectors":
                for vector in stage["vectors"]:
                    self.add(vector["values"], step)
                continue
            if kind in ("informed", "above"):
                for row in stage["informed"]:
                    self.add(row, -step)
            if kind in ("outcomes", "above"):
                for outcome in stage["outcomes"]:
                    self.add(
                        outcome["values"],
                        -step * sum(w for _, w in outcome["belief"]) // 2 ** min(c["weight_bits"], 10_000),
                    )
            if kind in ("corners", "above"):
                self.add(stage["corners"], -step)
            if kind in ("points", "above"):
                for point in stage["points"]:
                    point["value"] -= step * sum(w for _, w in point["belief"]) // 2 ** min(c["weight_bits"], 10_000)

    @staticmethod
    def add(values, step):
        values[:] = [None if value is None else value + step for value in values]

    def units(self, c):
        c[self.pick(["value_bits", "weight_bits"])] += int(self.pick([-2, -1, 1, 2]))

    def start(self, c):
        """Another belief, weights that are no distribution, or nearly the right ones."""
        one, states = 2 ** min(max(c["weight_bits"], 0), 10_000), list(range(self.table.n))
        c["start"] = self.pick(
            [
                [[self.pick(states), one]],
                [[self.pick(states), 1000 * one]],
                [[self.pick(states), 1]],
                [[s, int(w * one) + int(self.rng.integers(-1, 2))] for s, w in self.table.start.items()],
                [[s, 7 * int(w * one)] for s, w in self.table.start.items()],
                [[s, one // 3 + 1] for s in states],
                [[s + self.table.n, one] for s in states],
            ]
        )

    def horizon(self, c):
        """Stages left out or repeated, with or without the horizon that fits."""
        stages = c["stages"] * 2
        c["stages"] = copy.deepcopy(stages[: int(self.rng.integers(1, len(stages) + 1))])
        c["horizon"] = self.pick([None, len(c["stages"]), c["horizon"]])

    def stage(self, c):
        """A stage, or a part of one, of another problem's certificate."""
        other = self.pick(self.others)
        i, part = int(self.rng.integers(len(c["stages"]))), copy.deepcopy(self.pick(other["stages"]))
        if self.rng.random() < 0.3:
            c["stages"][i] = part
        else:
            key = self.pick(list(part))
            c["stages"][i][key] = part[key]

    def entry(self, c):
        """An entry that is gone, doubled, null, or another of its list."""
        lists = [entry for holder, key in self.slots(c) for entry in [holder[key]] if isinstance(entry, list) and entry]
        entries = self.pick(lists)
        i, j = (int(self.rng.integers(len(entries))) for _ in range(2))
        change = int(self.rng.integers(4))
        if change == 0:
            del entries[i]
        elif change == 1:
            entries.append(copy.deepcopy(entries[i]))
        else:
            entries[i] = None if change == 2 else copy.deepcopy(entries[j])

    def belief(self, c):
        """A belief of a point or an outcome, scaled or replaced, with its bounds left as they are."""
        stage = self.pick(c["stages"])
        holders = [x for x in (*stage["points"], *stage["outcomes"]) if isinstance(x, dict) and x.get("belief")]
        if holders:
            holder = self.pick(holders)
            factor = int(self.pick([2, 4, 2**20]))
            scaled = [[s, w * factor] for s, w in holder["belief"]]
            holder["belief"] = self.pick([scaled, self.pick(holders)["belief"], [[0, 1]], holder["belief"][:1]])

    def claim(self, c):
        """The greatest lower bound of any vector, and the least upper bound of any hint, at the start it has."""
        one = 2 ** min(c["weight_bits"], 10_000)
        stage, start = c["stages"][-1], self.table.live(self.table.start)
        if c["start"] is not None and self.rng.random() < 0.5:
            start = {s % self.table.n: Fraction(w, one) for s, w in c["start"]}
        worth = {}
        for k, vector in enumerate(stage["vectors"]):
            values = vector["values"]
            if all(values[s] is not None for s in start):
                worth[k] = sum(w * values[s] for s, w in start.items())
        c["vector"] = max(worth, key=worth.get)
        c["lower"] = floor(worth[c["vector"]])
        hints = {}
        corners = sum(w * stage["corners"][s] for s, w in start.items())
        for i, point in enumerate(stage["points"]):
            belief = {s: Fraction(w, one) for s, w in point["belief"]}
            gap = sum(w * stage["corners"][s] for s, w in belief.items()) - point["value"]
            hints[i] = corners - max(0, gap) * min(start.get(s, 0) / b for s, b in belief.items())
        rows = [row for row in stage["informed"] if all(row[s] is not None for s in start)]
        hints[-2] = max(sum(w * row[s] for s, w in start.items()) for row in rows)
        c["hint"] = min(hints, key=hints.get)
        c["upper"] = ceil(hints[c["hint"]])
        if self.rng.random() < 0.1:
            c[self.pick(["lower", "upper"])] += self.step()


def attack(kind, seed, n):
    """Forge n certificates; return how many were accepted, and each false bound that was."""
    rng = np.random.default_rng(seed)
    table, horizon, interval, made = originals(kind, seed)
    others = made + originals(kind, seed + 1)[3]
    forger, accepted, false = Forger(table, others, rng), 0, []
    intervals = {horizon: interval}
    for _ in range(n):
        certificate, kinds = forger.forged(made[int(rng.integers(len(made)))])
        try:
            bounds = verify(certificate, table.problem)
        except CertificateError:
            continue
        accepted += 1
        stated = bounds.horizon if bounds.horizon is not None or KINDS[kind][0].get("acyclic") else None
        if stated not in intervals:
            intervals[stated] = table.interval(stated)
        low, high = intervals[stated]
        if bounds.lower > high or bounds.upper < low:
            false.append((kind, seed, kinds, float(bounds.lower), float(bounds.upper), float(low), float(high), stated))
    return accepted, false
