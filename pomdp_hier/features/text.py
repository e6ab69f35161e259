"""Features out of text: TF-IDF through scikit-learn (extra ``text``)."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Literal

from scipy.sparse import csr_array

from pomdp_hier._arguments import is_whole
from pomdp_hier._extras import from_extra
from pomdp_hier._messages import brief
from pomdp_hier.errors import Argument, FeatureError, ParameterError, Setting
from pomdp_hier.features.table import FeatureTable

__all__ = ["text_features"]


def text_features(
    texts: Iterable[str],
    *,
    ids: Sequence[Hashable] | None = None,
    min_df: int = 1,
    ngrams: int = 1,
    sublinear: bool = False,
    stop_words: Literal["english"] | Sequence[str] | None = None,
    name: str = "the texts",
) -> FeatureTable:
    """Return TF-IDF of each text, one CSR row of length 1 a text, ``[N, number of terms]``; the columns are the terms.

    With ``tf`` the count of a term in a text, ``df`` the number of texts that have it, and N texts, an entry is
    ``tf * (1 + ln((1 + N) / (1 + df)))``, and each row is then divided by its length. Terms are words of two or more
    characters in lower case. A text without any term has a row of zeros.

    Args:
        texts: One text an item.
        ids: The id of each text.
        min_df: Leave out terms that fewer texts have.
        ngrams: The longest run of words that counts as a term; 1 for words alone.
        sublinear: Count ``1 + ln(tf)`` instead of ``tf``, so that a word said ten times does not count tenfold.
        stop_words: Words to leave out: a list, or ``"english"`` for scikit-learn's.
        name: What error texts call the source.

    Raises:
        FeatureError: A text is missing, or no text has a term.
        ParameterError: An option is out of range.
        MissingExtraError: Scikit-learn is not installed.

    Salton, Buckley (1988), Term-weighting approaches in automatic text retrieval.

    Example:
        >>> found = text_features(["red boots", "black boots", "shoe cream"])
        >>> found.columns
        ('black', 'boots', 'cream', 'red', 'shoe')
        >>> found.matrix.toarray().round(2)[0]
        array([0.  , 0.61, 0.  , 0.8 , 0.  ])
    """
    for option, value in (("min_df", min_df), ("ngrams", ngrams)):
        if not (is_whole(value) and value >= 1):
            raise ParameterError(Argument(option), f" is {brief(value)}; give a whole number, 1 or more")
    if isinstance(stop_words, str) and stop_words != "english":
        raise ParameterError(f'stop_words is {brief(stop_words)}; give "english" or a list of words')
    rows = list(texts)
    missing = next((row for row, text in enumerate(rows) if not isinstance(text, str)), None)
    if missing is not None:
        raise FeatureError(
            f"{name}, row {missing}: got {brief(rows[missing])}; expected text. Fill it in, or remove the row."
        )
    sklearn_text = from_extra("text", "sklearn.feature_extraction.text", "features out of text need scikit-learn")
    vectorizer = sklearn_text.TfidfVectorizer(
        min_df=int(min_df),
        ngram_range=(1, int(ngrams)),
        sublinear_tf=sublinear,
        stop_words=stop_words if stop_words is None or isinstance(stop_words, str) else list(stop_words),
    )
    try:
        matrix = vectorizer.fit_transform(rows)
    except ValueError as error:  # no terms remain, or min_df is above the number of texts
        raise FeatureError(
            f"{name}: got no term in {len(rows):,} texts; expected some words of two letters or more. ",
            *_advice(min_df, stop_words),
        ) from error
    return FeatureTable(
        csr_array(matrix), None if ids is None else tuple(ids), tuple(vectorizer.get_feature_names_out())
    )


def _advice(min_df: int, stop_words: object) -> list[str | Setting]:
    """Return what brings terms back, as far as options left them out."""
    if min_df > 1:
        return ["Count rarer terms as well: ", Setting("min_df", 1)]
    if stop_words is not None:
        return ["Leave this out: ", Setting("stop_words", stop_words)]
    return ["Take another column of text."]
