"""Structured mutations of valid inputs: of text and binary files by tokens and lines, and of nested Python values."""

import copy
import random
import re
import warnings
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

__all__ = ["mutated"]

MOST_BYTES = 1_000_000
_TOKEN = re.compile(rb"[A-Za-z_]\w*|[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\s+|[^A-Za-z_0-9\s]")
_NUMBER = re.compile(rb"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")

NUMBERS = (
    *(b"0", b"1", b"2", b"-1", b"-0.0", b"0.1", b"1.5", b"1e-400", b"1e308", b"1e400", b"nan", b"inf", b"-Infinity"),
    *(b"1e", b"--1", b"1_000", b"0x10", b"0.1.2", b"1/3", b"1/0", b"10**10**9", "１２".encode(), "٣".encode()),
    *(b"2147483648", b"9223372036854775807", b"9223372036854775808", b"9" * 30, b"9" * 5_000, b"0." + b"3" * 5_000),
)
WORDS = (
    *(b"", b"\0", b"\x1b[31m", b"\xef\xbb\xbf", b"\xff\xfe", b"\xed\xa0\x80", b"\xc3", "é".encode(), b"\xe2\x80\xa8"),
    *(b"\n", b"\r", b"\r\n", b"\t", b" ", b"\\", b"'", b'"', b"''", b'""', b"(", b")", b"[", b"]", b"{", b"}", b"<"),
    *(b",", b":", b";", b"|", b"/", b">", b"#", b"*", b"=", b"%", b"null", b"None", b"true", b"False", b"[]", b"{}"),
    *(b"=1+1", b"__import__('os')", b"<script>", b"a" * 1_000, b" " * 1_000, b"(" * 200, b"[" * 2_000),
)


def mutated(rng: random.Random, seeds: Sequence[Any], words: Sequence[str] = ()) -> Any:
    """Return one of the seeds after one to six changes; bytes stay bytes, text stays text, values are changed in place.

    Args:
        rng: Where the changes are drawn from.
        seeds: Valid inputs, all of one kind: bytes, text or Python values.
        words: Words of the format, which are put where other words stand.
    """
    seed = rng.choice(seeds)
    n_changes = rng.choice((1, 1, 1, 2, 2, 3, 4, 6))
    if isinstance(seed, str):
        others = [other.encode() for other in seeds if isinstance(other, str)]
        return _mutated_bytes(rng, seed.encode(), others, words, n_changes).decode("utf-8", "surrogateescape")
    if isinstance(seed, bytes):
        return _mutated_bytes(rng, seed, [s for s in seeds if isinstance(s, bytes)], words, n_changes)
    value = copy.deepcopy(seed)
    for _ in range(n_changes):
        value = _somewhere(rng, value)
    return value


# --- files -------------------------------------------------------------------------------------------------------


def _mutated_bytes(
    rng: random.Random, content: bytes, seeds: Sequence[bytes], words: Sequence[str], n_changes: int
) -> bytes:
    dictionary = (*WORDS, *(word.encode() for word in words))
    for _ in range(n_changes):
        change = rng.choice(_CHANGES)
        content = change(rng, content, seeds, dictionary)[:MOST_BYTES]
    return content


def _pieces(rng: random.Random, content: bytes) -> tuple[list[bytes], int, int]:
    """Return the tokens or the lines, and where some of them begin and end: mostly one, sometimes many."""
    pieces = content.splitlines(keepends=True) if rng.random() < 0.3 else _TOKEN.findall(content)
    start = rng.randrange(len(pieces) + 1)
    return pieces, start, min(len(pieces), start + rng.choice((0, 1, 1, 1, 1, 2, 3, 10)))


def _drop(rng: random.Random, content: bytes, seeds: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    pieces, start, stop = _pieces(rng, content)
    return b"".join(pieces[:start] + pieces[stop:])


def _repeat(rng: random.Random, content: bytes, seeds: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    pieces, start, stop = _pieces(rng, content)
    times = rng.choice((2, 2, 2, 3, 50, 2_000))
    return b"".join(pieces[:start]) + b"".join(pieces[start:stop]) * times + b"".join(pieces[stop:])


def _exchange(rng: random.Random, content: bytes, seeds: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    pieces, start, stop = _pieces(rng, content)
    at = rng.randrange(len(pieces) + 1)
    moved, rest = pieces[start:stop], pieces[:start] + pieces[stop:]
    return b"".join(rest[:at] + moved + rest[at:])


def _replace(rng: random.Random, content: bytes, seeds: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    pieces, start, stop = _pieces(rng, content)
    put = rng.choice(pieces) if pieces and rng.random() < 0.3 else rng.choice((*words, *NUMBERS))
    return b"".join(pieces[:start]) + put + b"".join(pieces[stop:])


def _renumber(rng: random.Random, content: bytes, seeds: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    numbers = list(_NUMBER.finditer(content))
    if not numbers:
        return content
    number = rng.choice(numbers)
    put = rng.choice(NUMBERS) if rng.random() < 0.6 else rng.choice(numbers)[0]
    return content[: number.start()] + put + content[number.end() :]


def _cut(rng: random.Random, content: bytes, seeds: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    at = rng.randrange(len(content) + 1)
    return content[:at] if rng.random() < 0.7 else content[at:]


def _splice(rng: random.Random, content: bytes, seeds: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    other = rng.choice(seeds)
    return content[: rng.randrange(len(content) + 1)] + other[rng.randrange(len(other) + 1) :]


def _overwrite(rng: random.Random, content: bytes, seeds: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """Change single bytes, or a whole integer of a binary format, near the beginning or the end more often."""
    if not content:
        return content
    reach = rng.choice((16, 128, 1_000, len(content)))
    at = min(rng.randrange(reach), len(content) - 1)
    at = at if rng.random() < 0.7 else len(content) - 1 - at
    width = rng.choice((1, 1, 2, 4, 8))
    number = rng.choice((0, 1, -1, 255, rng.getrandbits(8), 1 << (8 * width - 1), 1 << (8 * width - 2)))
    put = (number % (1 << 8 * width)).to_bytes(width, rng.choice(("little", "big")))
    return content[:at] + put + content[at + width :]


def _recode(rng: random.Random, content: bytes, seeds: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """Change the line ends or the encoding of a text."""
    text = content.decode("utf-8", "replace")
    return rng.choice(
        (
            content.replace(b"\n", b"\r\n"),
            content.replace(b"\n", b"\r"),
            content.replace(b"\n", b" "),
            content.upper(),
            text.encode("utf-16"),
            text.encode("utf-8-sig"),
            text.encode("latin-1", "replace"),
        )
    )


_CHANGES = (*(_drop, _repeat, _exchange, _replace, _renumber) * 4, _cut, _splice, _overwrite, _overwrite, _recode)


# --- Python values -----------------------------------------------------------------------------------------------


def _deep(depth: int) -> list[Any]:
    nested: list[Any] = []
    for _ in range(depth):
        nested = [nested]
    return nested


VALUES: tuple[Callable[[], Any], ...] = (
    *(lambda: None, lambda: True, lambda: False, lambda: -1, lambda: 0, lambda: 1, lambda: 2, lambda: 1.5),
    *(lambda: 2**31, lambda: 2**63, lambda: -(2**63) - 1, lambda: 10**30, lambda: 10**5_000, lambda: 5e-324),
    *(lambda: float("nan"), lambda: float("inf"), lambda: -1e308, lambda: 1j, lambda: Fraction(1, 3)),
    *(lambda: Decimal("NaN"), lambda: "", lambda: "\0", lambda: "a" * 1_000, lambda: "0", lambda: "\ud800"),
    *(lambda: b"bytes", lambda: [], lambda: {}, lambda: (), lambda: [[]], lambda: set(), object, lambda: print),
    *(lambda: np.float64("nan"), lambda: np.int64(3), lambda: np.uint64(2**63), lambda: np.str_("x")),
    *(lambda: np.datetime64("NaT", "s"), lambda: np.zeros(0), lambda: np.zeros((2, 0)), lambda: np.ma.masked),
    *(lambda: _deep(30), lambda: _deep(3_000), lambda: range(10**9), lambda: iter([1])),
)


def _somewhere(rng: random.Random, value: Any) -> Any:
    """Return the value with a change in one place, mostly deep inside."""
    if isinstance(value, list | tuple | dict) and value and rng.random() < 0.75:
        if isinstance(value, dict):
            key = rng.choice(list(value))
            return {**value, key: _somewhere(rng, value[key])}
        at = rng.randrange(len(value))
        parts = list(value)
        parts[at] = _somewhere(rng, parts[at])
        return _like(value, parts)
    if rng.random() < 0.4:
        return rng.choice(VALUES)()
    return _changed(rng, value)


def _like(value: Any, parts: list[Any]) -> Any:
    return parts if isinstance(value, list) else tuple(parts)


def _changed(rng: random.Random, value: Any) -> Any:
    """Return a neighbour of the value of its own kind."""
    if isinstance(value, dict):
        keys = list(value)
        gone = rng.choice(keys) if keys else None
        rest = {key: item for key, item in value.items() if key is not gone}
        new = rng.choice((str(gone), "", 0, None, ("a", 1), 1.5))
        return rest if rng.random() < 0.5 or not keys else {**rest, new: value[gone]}
    if isinstance(value, list | tuple):
        parts = list(value)
        at = rng.randrange(len(parts) + 1)
        ways: tuple[Callable[[], list[Any]], ...] = (
            lambda: parts[:at] + parts[at + 1 :],
            lambda: parts[:at] + parts[at : at + 1] * rng.choice((2, 3, 500)) + parts[at + 1 :],
            lambda: parts[::-1],
            lambda: rng.sample(parts, len(parts)),
            lambda: [*parts[:at], rng.choice(VALUES)(), *parts[at:]],
            lambda: [parts],
        )
        return _like(value, rng.choice(ways)())
    if isinstance(value, np.ndarray):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # complex to real, masked to NaN
            return _changed_array(rng, value)
    if isinstance(value, str):
        content = value.encode("utf-8", "surrogatepass")
        return _mutated_bytes(rng, content, [content], (), 1).decode("utf-8", "surrogateescape")
    if isinstance(value, bool | int | float):
        near = (-value, value + 1, value - 1, value * 1_000_000, [value])
        beyond_float = isinstance(value, int) and value.bit_length() > 1_000  # its text may be too long for Python, too
        return rng.choice(near if beyond_float else (*near, float(value), str(value)))
    return rng.choice(VALUES)()


def _changed_array(rng: random.Random, array: np.ndarray) -> Any:
    if not array.ndim:
        return rng.choice((array.tolist(), array.ravel(), array[None]))
    if array.size and array.dtype.kind in "fiub" and rng.random() < 0.5:
        changed = np.asarray(array).astype(np.float64 if array.dtype.kind != "f" or rng.random() < 0.2 else array.dtype)
        numbers = (np.nan, np.inf, -1.0, 0.0, 1e308, 5e-324, 2.0**53, 0.5, float(changed.max()) + 1)
        changed[tuple(rng.randrange(n) for n in array.shape)] = rng.choice(numbers)
        return changed if rng.random() < 0.5 or not np.isfinite(changed).all() else changed.astype(np.int64, copy=False)
    ways: tuple[Callable[[], Any], ...] = (
        lambda: array[:-1],
        lambda: array[..., :-1] if array.ndim else array,
        lambda: array.T,
        lambda: array.ravel(),
        lambda: array[None],
        lambda: array[:0],
        lambda: array.astype(rng.choice(("S8", "U8", "O", "f2", "f4", "c16", "u8", "i1", "?", "M8[s]")), copy=True),
        lambda: array.tolist(),
        lambda: np.ma.masked_array(array, mask=np.ones(array.shape, dtype=bool)),
        lambda: np.concatenate([array, array]) if array.ndim else array,
    )
    try:
        return rng.choice(ways)()
    except (TypeError, ValueError, OverflowError, RuntimeError):  # a type that numpy cannot turn into the other
        return array.tolist()
