"""Pairs of Newick texts over the same names, shuffled, with the figures of scikit-bio and DendroPy."""

import random

N_PAIRS = 200

# scikit-bio 0.7.4, compare_rfd(rooted=True), and DendroPy 5.1.3, symmetric_difference: the same 200 numbers
ROBINSON_FOULDS = """
3 6 5 7 8 12 0 3 6 9 11 13 0 5 7 6 9 12 3 6 5 7 10 12 3 2 6 6 9 13 4 6 6 8 9 9 1 5 8 9 9 11 2 3 6 5 9 11 3 6 5 8 10
10 4 5 7 7 7 11 2 4 5 7 11 10 2 4 6 7 10 10 1 5 6 9 8 10 1 4 6 9 9 11 3 5 6 8 6 12 3 3 6 7 8 10 1 4 6 9 9 11 3 5 7 8
10 10 3 4 6 9 11 12 4 6 7 6 9 11 3 5 5 6 11 5 2 4 6 7 7 11 3 4 4 7 8 12 3 5 5 7 10 13 1 5 5 10 10 11 3 4 5 9 10 11 2
4 7 8 10 12 3 5 5 9 9 10 3 5 5 7 8 11 0 5 5 7 9 10 2 5 8 7 11 10 2 6 6 9 7 11 1 5 8 8 11 13 0 2
"""

# scikit-bio 0.7.4: the correlation of both trees' cophenet() over all pairs of names
COPHENETIC = """
-0.316 0.079 -0.073 0.116 -0.093 -0.066 1.000 -0.184 0.245 0.184 -0.022 0.165 1.000 0.000 -0.354 -0.015 0.049 -0.053
0.000 -0.079 -0.350 -0.330 -0.101 -0.033 0.200 0.375 -0.209 0.176 -0.149 0.236 -0.200 -0.237 -0.386 -0.107 -0.118
-0.122 0.894 0.273 -0.191 -0.119 -0.228 -0.093 -0.333 -0.350 0.020 0.099 0.572 0.035 -0.400 -0.079 -0.308 -0.077
0.112 0.117 -0.200 -0.115 -0.125 -0.007 0.061 -0.015 -0.447 0.387 -0.351 0.031 -0.216 -0.193 -0.333 0.000 0.030
-0.092 -0.252 0.068 0.894 -0.072 0.110 -0.192 -0.082 0.093 0.894 0.079 -0.262 -0.116 -0.174 -0.182 -0.400 -0.091
0.178 0.232 0.034 -0.006 -0.400 0.058 -0.267 -0.072 0.064 -0.207 0.800 0.387 -0.087 -0.090 0.022 0.008 0.000 -0.209
-0.022 -0.167 -0.233 -0.031 0.000 0.387 0.424 -0.040 0.009 0.076 -0.158 0.125 -0.183 -0.290 -0.088 0.000 -0.316
0.000 -0.225 0.109 -0.149 0.519 0.447 -0.166 0.060 0.362 -0.040 0.216 -0.447 -0.250 0.174 -0.309 0.078 0.026 0.000
-0.348 0.009 0.476 -0.001 -0.088 0.800 -0.272 -0.110 -0.102 -0.146 0.114 -0.316 -0.449 0.244 -0.312 -0.025 0.101
-0.447 -0.318 -0.233 -0.056 -0.186 0.096 -0.316 0.110 -0.232 0.298 -0.072 -0.185 -0.316 -0.344 -0.194 -0.103 -0.095
-0.095 1.000 -0.455 0.201 0.442 0.018 -0.107 -0.447 -0.216 -0.018 -0.076 0.254 0.179 0.316 -0.237 -0.146 -0.182
0.437 -0.163 0.800 -0.228 -0.245 -0.161 -0.164 0.151 1.000 0.384
"""


def newick_pairs() -> list[tuple[str, str]]:
    """Pairs of rooted trees over 4 to 9 names, multifurcating; a branch is as long as its ends' sizes differ."""
    rng = random.Random(23)
    return [(text(rng, names), text(rng, names)) for names in ([*"abcdefghi"[: 4 + at % 6]] for at in range(N_PAIRS))]


def text(rng: random.Random, names: list[str]) -> str:
    parts = [(name, 1, 0.0) for name in names]
    rng.shuffle(parts)
    while len(parts) > 1:
        count = min(len(parts), rng.choice((2, 2, 2, 3)))
        joined = [parts.pop(rng.randrange(len(parts))) for _ in range(count)]
        size = sum(part[1] for part in joined)
        inside = ",".join(f"{name}:{size - height}" for name, _, height in joined)
        parts.append((f"({inside})", size, float(size)))
    return parts[0][0] + ";"
