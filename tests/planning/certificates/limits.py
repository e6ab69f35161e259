"""Certificates of random small problems, each number at its limit, by fractions: independent of solver and verifier."""

from collections import defaultdict
from fractions import Fraction
from math import ceil, floor, lcm

import numpy as np

from pomdp_hier import POMDP

QUARTERS = [[4], [2, 2], [1, 3], [1, 1, 2]]


class Table:
    """A problem of fractions, and its exact optimal value by enumerating the reachable beliefs."""

    def __init__(
        self, seed, *, discount=Fraction(1, 2), terminal=False, legal="all", costs=False, acyclic=False, certain=False
    ):
        rng = np.random.default_rng(seed)
        self.certain = certain  # with integer rewards, so that all integers of a certificate are over 1
        self.n = n = 3
        self.gamma = discount
        self.terminal = {n - 1} if terminal or acyclic else set()
        self.actions, self.observations = range(2), range(2)
        self.P, self.Z, self.R = {}, {}, {}
        self.legal = {s: frozenset({0} if legal == "some" and s == 1 else {0, 1}) for s in range(n)}
        self.legal_after = {None: [0, 1], 0: [0, 1], 1: [1] if legal == "observation" else [0, 1]}
        for a in self.actions:
            for s in range(n):
                after = range(s + 1, n) if acyclic and s < n - 1 else range(n)
                if certain:  # the states are permuted, and never seen, so that beliefs keep their size
                    after = [(s + a) % n]
                self.P[a, s] = self.spread(rng, after)
                self.Z[a, s] = self.spread(rng, [0] if certain else self.observations)
                for t in range(n):
                    for o in self.observations:
                        self.R[a, s, t, o] = Fraction(int(rng.integers(-6, 0 if costs else 7)), 1 if certain else 2)
        self.start = self.spread(rng, range(2))
        self.rows = {(a, s): self.row(a, s) for a in self.actions for s in range(n) if s not in self.terminal}
        legal_rows = [(a, s) for a, s in self.rows if a in self.legal[s]]
        products = [p * z for a, s in legal_rows for t, p in self.P[a, s].items() for z in self.Z[a, t].values()]
        self.chance = lcm(*(p.denominator for p in products))
        self.problem = POMDP(
            transition=lambda s, a: self.P[a, s],
            observation=lambda t, a: self.Z[a, t],
            reward=lambda s, a, t, o: self.R[a, s, t, o],
            initial_belief=self.start,
            discount=discount,
            states=list(range(n)),
            actions=list(self.actions),
            observations=list(self.observations),
            terminal=sorted(self.terminal),
            legal_actions=self.legal_after.__getitem__ if legal == "observation" else lambda s: sorted(self.legal[s]),
            legal_by="observation" if legal == "observation" else "state",
        )

    def spread(self, rng, over):
        over = [int(x) for x in rng.permutation(list(over))]
        parts = [parts for parts in QUARTERS if len(parts) <= len(over)]
        parts = parts[0 if self.certain else int(rng.integers(len(parts)))]
        return {x: Fraction(part, 4) for x, part in zip(over, parts, strict=False)}

    def row(self, a, s):
        """The expected reward, and ``{o: {t: p}}`` without terminal states."""
        reward, after = Fraction(0), defaultdict(dict)
        for t, p in self.P[a, s].items():
            for o, z in self.Z[a, t].items():
                reward += p * z * self.R[a, s, t, o]
                if t not in self.terminal:
                    after[o][t] = p * z
        return reward, after

    def live(self, belief):
        return {s: w for s, w in belief.items() if s not in self.terminal}

    def allowed(self, belief):
        return frozenset.intersection(*(self.legal[s] for s in belief))

    def step(self, belief, a):
        """The expected reward of an action, and the unnormalised belief after each observation."""
        reward, after = Fraction(0), defaultdict(lambda: defaultdict(Fraction))
        for s, w in belief.items():
            reward += w * self.rows[a, s][0]
            for o, entries in self.rows[a, s][1].items():
                for t, p in entries.items():
                    after[o][t] += w * p
        return reward, after

    def value(self, belief, horizon, observation=None):
        """The optimal value over n actions."""
        belief = self.live(belief)
        if not horizon or not belief:
            return Fraction(0)
        best = []
        for a in self.allowed(belief) & set(self.legal_after[observation]):
            reward, after = self.step(belief, a)
            best.append(reward + self.gamma * sum(self.value(then, horizon - 1, o) for o, then in after.items()))
        return max(best)

    def interval(self, horizon, steps=6):
        """Exact bounds on the optimal value: equal over a horizon; else with the rest after n steps."""
        if horizon is not None or self.gamma == 1:
            value = self.value(self.start, horizon or self.n)
            return value, value
        rest = self.gamma**steps / (1 - self.gamma)
        rewards = [reward for reward, _ in self.rows.values()]
        value = self.value(self.start, steps)
        return value + rest * min(0, *rewards), value + rest * max(0, *rewards)


class Certificate:
    """A certificate of random vectors, points, outcomes and hints, each number as tight as its inequality allows."""

    def __init__(self, table, horizon, seed, *, value_bits=1, weight_bits=1, passes=3):
        self.table, self.horizon, self.rng = table, horizon, np.random.default_rng(seed)
        self.value_unit, self.weight_unit = Fraction(1, 2**value_bits), Fraction(1, 2**weight_bits)
        n = table.n
        self.live = [s for s in range(n) if s not in table.terminal]
        self.stages = []
        for i in range(horizon or 1):
            self.stages.append(self.stage(i))
        self.top = {
            "format": "pomdp-hier bounds",
            "version": 2,
            "sizes": [n, len(table.actions), len(table.observations)],
            "horizon": horizon,
            "value_bits": value_bits,
            "weight_bits": weight_bits,
            "start": None,
            "vector": 0,
            "hint": self.hint(),
            "stages": self.stages,
        }
        for _ in range(passes if horizon is None else 1):
            for path in self.numbers():
                self.set(path, self.limit(path))
        self.claim()

    def hint(self):
        return int(self.rng.choice([-2, -1, 0, 1, 2, 3, 0, 1, 2, 3, 4]))

    def belief(self, least=1):
        size = int(self.rng.integers(least, len(self.live) + 1))
        return [[int(s), int(self.rng.integers(1, 6))] for s in self.rng.permutation(self.live)[:size]]

    def stage(self, i):
        table, rng = self.table, self.rng
        n, actions, observations = table.n, table.actions, table.observations
        rewards = [abs(reward) for reward, _ in table.rows.values()]
        steps = 1 / (1 - table.gamma) if table.gamma < 1 else n
        most = ceil(max(rewards) * steps / self.value_unit) if self.horizon is None else 10**6
        vectors = []
        for k in range(4):
            after = [0 if k == 0 else int(rng.integers(4)) for _ in observations]
            vectors.append({"action": 0 if k < 2 else int(rng.integers(2)), "after": after, "values": [None] * n})
        before = self.stages[i - 1]["vectors"] if i else vectors
        for vector in vectors:
            a = vector["action"]
            for s in self.live:
                vector["values"][s] = -most if a in table.legal[s] else None
        while i or self.horizon is None:  # until no value rests on one that is missing
            gone = [
                (vector, s)
                for vector in vectors
                for s, value in enumerate(vector["values"])
                if value is not None
                for o, entries in table.rows[vector["action"], s][1].items()
                if any(before[vector["after"][o]]["values"][t] is None for t in entries)
            ]
            if not gone:
                break
            for vector, s in gone:
                vector["values"][s] = None
        outcomes, triples = [], [[a, s, o] for (a, s), (_, after) in table.rows.items() for o in after]
        rng.shuffle(triples)
        for j in range(4):
            belief = self.belief()
            mass = sum(w for _, w in belief)
            values = [ceil(most * mass * self.weight_unit)] * len(actions)
            outcomes.append({"after": [[int(x) for x in t] for t in triples[j::4]], "belief": belief, "values": values})
        beliefs = [self.belief(2) for _ in range(4)]
        beliefs += [[[s, int(rng.integers(1, 6))]] for s in (*self.live[:2], *self.live[:2])]
        points = [self.point(belief, most) for belief in beliefs]
        return {
            "vectors": vectors,
            "informed": [[most if s in self.live and a in table.legal[s] else None for s in range(n)] for a in actions],
            "outcomes": outcomes,
            "corners": [most if s in self.live else None for s in range(n)],
            "corner_points": [[s, 4 + s] for s in self.live[:2]],
            "points": points,
        }

    def point(self, belief, most):
        mass = sum(w for _, w in belief) * self.weight_unit
        hints = [[self.hint() for _ in self.table.observations] for _ in self.table.actions]
        return {
            "belief": belief,
            "value": ceil(most * mass),
            "actions": [None if self.rng.random() < 0.3 else hint for hint in hints],
        }

    # --- the inequalities ----------------------------------------------------------------------------------------

    def numbers(self):
        """The paths of all values, in an order in which each rests on those before it, where there is a horizon."""
        for i, stage in enumerate(self.stages):
            for k, vector in enumerate(stage["vectors"]):
                yield from ((i, "vectors", k, "values", s) for s, v in enumerate(vector["values"]) if v is not None)
            for a, row in enumerate(stage["informed"]):
                yield from ((i, "informed", a, s) for s, v in enumerate(row) if v is not None)
            for j, outcome in enumerate(stage["outcomes"]):
                allowed = self.table.allowed(self.weights(outcome["belief"]))
                yield from ((i, "outcomes", j, "values", a) for a in sorted(allowed))
            yield from ((i, "points", p, "value") for p in range(len(stage["points"])))
            yield from ((i, "corners", s) for s in self.live)

    def get(self, path):
        value = self.stages
        for key in path:
            value = value[key]
        return value

    def set(self, path, value):
        self.get(path[:-1])[path[-1]] = value

    def name(self, path):
        text = f"stages[{path[0]}]"
        for key in path[1:]:
            text += f"[{key}]" if isinstance(key, int) else f".{key}"
        return text

    def weights(self, belief):
        return {s: w * self.weight_unit for s, w in belief}

    def below(self, i):
        return self.stages[i] if self.horizon is None else self.stages[i - 1] if i else None

    def limit(self, path):
        """The tightest value that the inequality of a number allows, from the other numbers."""
        i, kind, which = path[:3]
        stage, below, table = self.stages[i], self.below(i), self.table
        if kind == "vectors":
            vector = stage["vectors"][which]
            reward, after = table.rows[vector["action"], path[-1]]
            value = reward
            if below is not None:
                for o, entries in after.items():
                    then = below["vectors"][vector["after"][o]]["values"]
                    value += table.gamma * sum(p * then[t] * self.value_unit for t, p in entries.items())
            return floor(value / self.value_unit)
        if kind == "informed":
            return ceil(self.backup(below, {path[-1]: Fraction(1)}, which) / self.value_unit)
        if kind == "outcomes":
            belief = self.weights(stage["outcomes"][which]["belief"])
            return ceil(self.backup(below, belief, path[-1]) / self.value_unit)
        if kind == "corners":
            point = dict(stage["corner_points"]).get(which)
            if point is None:
                return max(stage["informed"][a][which] for a in table.legal[which])
            value = stage["points"][point]
            return ceil(Fraction(value["value"]) / self.weights(value["belief"])[which])
        return ceil(self.point_limit(stage, below, stage["points"][which]) / self.value_unit)

    def q(self, stage, a, belief):
        return sum(w * stage["informed"][a][s] * self.value_unit for s, w in belief.items())

    def backup(self, below, belief, a):
        value = sum(w * self.table.rows[a, s][0] for s, w in belief.items())
        if below is None:
            return value
        sums = defaultdict(list)
        for s, w in belief.items():
            for o, entries in self.table.rows[a, s][1].items():
                sums[o].append((w, self.outcome(below, (a, s, o), entries)))
        for parts in sums.values():
            shared = frozenset.intersection(*(frozenset(bounds) for _, bounds in parts))
            value += self.table.gamma * max(sum(w * bounds[then] for w, bounds in parts) for then in shared)
        return value

    def outcome(self, below, triple, entries):
        """The bound on each action's value after an outcome, rounded up as integers are."""
        found = next((x for x in reversed(below["outcomes"]) if list(triple) in x["after"]), None)
        bounds = {}
        for then in self.table.allowed(entries):
            value = self.q(below, then, entries)
            if found is not None:
                belief = self.weights(found["belief"])
                gap = (
                    self.q(below, then, belief) - found["values"][then] * self.value_unit
                    if self.covers(entries, belief)
                    else 0
                )
                if gap > 0:
                    value -= gap * min(entries[s] / b for s, b in belief.items())
            bounds[then] = self.up(value, self.value_unit / self.table.chance)
        return bounds

    @staticmethod
    def covers(entries, belief):
        return all(s in entries for s in belief)

    @staticmethod
    def up(value, grid):
        return ceil(value / grid) * grid

    def point_limit(self, stage, below, point):
        belief, best = self.weights(point["belief"]), []
        for a in self.table.allowed(belief):
            hints = point["actions"][a]
            if hints is None:
                best.append(self.q(stage, a, belief))
                continue
            reward, after = self.table.step(belief, a)
            if below is not None:
                grid = self.value_unit * self.weight_unit / self.table.chance
                for o, then in after.items():
                    reward += self.table.gamma * self.interpolation(below, then, hints[o], grid)
            best.append(reward)
        return max(best)

    def interpolation(self, stage, weights, hint, grid):
        if hint == -2:
            return max(self.q(stage, a, weights) for a in self.table.allowed(weights))
        base = sum(w * stage["corners"][s] * self.value_unit for s, w in weights.items())
        if hint == -1:
            return base
        point = stage["points"][hint]
        belief = self.weights(point["belief"])
        gap = (
            sum(w * stage["corners"][s] for s, w in belief.items()) * self.value_unit - point["value"] * self.value_unit
        )
        if gap > 0 and self.covers(weights, belief):
            base -= gap * min(weights[s] / b for s, b in belief.items())
        return self.up(base, grid)

    def claim(self):
        """Claim the tightest bounds at the start."""
        stage, start = self.stages[-1], self.table.live(self.table.start)
        values = stage["vectors"][0]["values"]
        self.top["lower"] = floor(sum(w * values[s] for s, w in start.items()))
        grid = self.value_unit / lcm(*(w.denominator for w in start.values()))
        self.top["upper"] = ceil(self.interpolation(stage, start, self.top["hint"], grid) / self.value_unit)
