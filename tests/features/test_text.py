"""TF-IDF out of text: the formula, what is left out, and what is refused."""

import math
import sys

import numpy as np
import pytest

from pomdp_hier import load_features
from pomdp_hier.errors import FeatureError, MissingExtraError, ParameterError
from pomdp_hier.features import text_features

TEXTS = ["Red boots, red laces", "black boots", "Shoe cream", ""]


def test_entries_follow_the_formula():
    found = text_features(TEXTS, ids=["a", "b", "c", "d"])
    assert (found.ids, found.matrix.format) == (("a", "b", "c", "d"), "csr")
    texts = [[word.strip(",").lower() for word in text.split()] for text in TEXTS]
    for row, words in zip(found.matrix.toarray(), texts, strict=True):
        raw = [
            words.count(term) * (1 + math.log((1 + len(texts)) / (1 + sum(term in other for other in texts))))
            for term in found.columns
        ]
        length = math.hypot(*raw) or 1.0
        assert row == pytest.approx([entry / length for entry in raw], abs=1e-12)
    assert not found.matrix.toarray()[3].any()


def test_options():
    assert text_features(TEXTS, min_df=2).columns == ("boots",)
    assert "red boots" in text_features(TEXTS, max_ngram=2).columns
    assert "boots" not in text_features(TEXTS, stop_words=["boots"]).columns
    assert "the" not in text_features(["the shoe", "the boot"], stop_words="english").columns
    plain, damped = text_features(TEXTS), text_features(TEXTS, sublinear_tf=True)
    red = plain.columns.index("red")
    assert damped.matrix[0, red] < plain.matrix[0, red]


@pytest.mark.parametrize("options", [{"min_df": 0}, {"max_ngram": 1.5}, {"max_ngram": True}, {"stop_words": "klingon"}])
def test_bad_options(options):
    with pytest.raises(ParameterError, match=next(iter(options))):
        text_features(TEXTS, **options)


@pytest.mark.parametrize(
    ("texts", "said"), [(["a b", None], "row 1: got None"), (["", " "], "no term in 2 texts"), ([], "no term in 0")]
)
def test_bad_texts(texts, said):
    with pytest.raises(FeatureError, match=said):
        text_features(texts)


def test_min_df_above_the_number_of_texts():
    with pytest.raises(FeatureError, match="min_df=1"):
        text_features(["red boots"], min_df=5)


def test_without_scikit_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.feature_extraction.text", None)
    with pytest.raises(MissingExtraError, match=r"pomdp-hier\[text\]"):
        text_features(TEXTS)


def test_columns_of_a_csv_file(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('price,id,title,words\n3,b,"Red; boots",new\n4,a,black boots,\n', encoding="utf-8-sig")
    found = load_features(path, text="title")
    assert found.ids == ("b", "a")
    assert found.columns == ("black", "boots", "red")
    both = load_features(path, text=["title", "words"], tfidf={"max_ngram": 2})
    assert {"new", "boots new"} <= set(both.columns)
    assert load_features(path, text="title", id_column="words").ids == ("new", "")
    with pytest.raises(FeatureError, match=r"no column 'name'.*price, id, title"):
        load_features(path, text="name")
    with pytest.raises(ParameterError, match="text, embedding: got both"):
        load_features(path, text="title", embedding="words")
    with pytest.raises(FeatureError, match="expected vectors in Parquet"):
        load_features(path, embedding="words")


@pytest.mark.parametrize("content", [b"", b"id,title\n1\n", b"id,title\n1,\xff\n", b'id,title\n1,"x\n'])
def test_errors_in_tables_of_text(tmp_path, content):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(FeatureError, match=r"t\.csv[ ,:]"):
        load_features(tmp_path / "t.csv", text="title")


def test_an_archive_has_no_text(tmp_path):
    np.savez(tmp_path / "x.npz", X=np.eye(2))
    with pytest.raises(FeatureError, match="delimited text"):
        load_features(tmp_path / "x.npz", text="title")
