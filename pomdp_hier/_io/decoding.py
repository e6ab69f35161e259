"""Conversion of exceptions of decoders into errors of this package."""

from collections.abc import Iterator
from contextlib import contextmanager

from pomdp_hier._text import visible
from pomdp_hier.errors import PomdpHierError

_LONGEST = 200  # characters of the decoder's own words


@contextmanager
def decoding(
    name: str, error: type[PomdpHierError], expected: str, remedy: str = "Copy or write the file again"
) -> Iterator[None]:
    """Turn every exception of a decoder into an error of this package.

    Decoders document few of their exceptions: ``zipfile`` passes on those of zlib, bz2 and lzma, numpy those of the
    tokenizer of Python. So every exception counts, also a MemoryError: a damaged header may ask for any size.

    Args:
        name: The file, and the part of it that is decoded.
        error: What to raise.
        expected: What the file should be.
        remedy: What to do.

    Raises:
        PomdpHierError: As ``error``: the decoder raised something.

    Example:
        >>> from pomdp_hier.errors import FeatureError
        >>> with decoding("x.gz", FeatureError, "a gzip file"):
        ...     raise EOFError("Compressed file ended early")
        Traceback (most recent call last):
        pomdp_hier.errors.FeatureError: x.gz: cannot be decoded (Compressed file ended early); expected a gzip file. ...
    """
    try:
        yield
    except PomdpHierError:
        raise
    except Exception as wrong:
        reason = visible(" ".join(str(wrong).split()))[:_LONGEST] or type(wrong).__name__
        raise error(f"{name}: cannot be decoded ({reason}); expected {expected}. {remedy}.") from wrong
