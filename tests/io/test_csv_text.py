"""CSV as the standard library writes it comes back; every fault of a table is named by its line."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pomdp_hier._io.formats import open_csv
from pomdp_hier.errors import FeatureError, ParameterError, ReaderError

cells = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
tables = st.integers(2, 4).flatmap(
    lambda width: st.lists(st.lists(cells, min_size=width, max_size=width), min_size=1, max_size=5)
)


@given(tables, st.sampled_from(",;\t|"), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_written_tables_are_read_back(rows, delimiter, ending, as_bytes):
    header = [f"column {place}" for place in range(len(rows[0]))]
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator=ending, quoting=csv.QUOTE_ALL).writerows([header, *rows])
    source = io.BytesIO(text.getvalue().encode("utf-8-sig")) if as_bytes else text.getvalue()
    found = open_csv(source, ReaderError, delimiter=delimiter)
    assert (found.columns, [row for _, row in found.rows]) == (header, rows)


def test_the_delimiter_is_found_in_the_header_outside_quotes():
    for text, delimiter in [("a,b\n", ","), ("a;b,c;d\n", ";"), ("a\tb\n", "\t"), ('"a, b, c";d\n', ";"), ("a\n", ",")]:
        assert open_csv(text, ReaderError).delimiter == delimiter


def test_lines_are_counted_as_an_editor_counts_them():
    text = '\n# a, comment\n\n id , name \n\n1,"two\nlines"\n  \n2,b\n'
    found = open_csv(text, ReaderError, comment="#")
    assert (found.columns, list(found.rows)) == (["id", "name"], [(7, ["1", "two\nlines"]), (9, ["2", "b"])])


def test_a_cell_that_is_quoted_and_empty_is_a_row():
    assert list(open_csv('x\n""\n\n \n1\n', ReaderError).rows) == [(2, [""]), (5, ["1"])]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("", "t.csv: got an empty table"),
        (" \n\n", "t.csv: got an empty table"),
        ("a,b\n\n1\n", r"t\.csv, line 3: got 1 cell; expected 2"),
        ('a,b\n1,"2\n', r"t\.csv, line 2: cannot be decoded"),
        ('"a,b\n', r"t\.csv, line 1: cannot be decoded"),
        ("a\n" + "x" * 131_073, r"t\.csv, line 2: .*field larger than field limit"),
        (io.BytesIO(b"a,b\n1,\xff\n"), r"t\.csv: got byte 0xff; expected UTF-8"),
    ],
)
def test_errors_in_tables(source, said):
    for kind in (FeatureError, ReaderError):
        if isinstance(source, io.BytesIO):
            source.seek(0)
        with pytest.raises(kind, match=said):
            list(open_csv(source, kind, name="t.csv").rows)


@pytest.mark.parametrize("delimiter", ["", ",,", "\n", '"'])
def test_a_delimiter_is_one_character(delimiter):
    with pytest.raises(ParameterError, match="expected one character"):
        open_csv("a,b\n", ReaderError, delimiter=delimiter)


def test_any_exception_of_the_csv_reader_is_an_error_of_the_package(monkeypatch):
    class Broken:
        line_num = 3

        def __init__(self, *given, **settings):
            self.rows = iter([["a", "b"]])

        def __iter__(self):
            return self

        def __next__(self):
            for row in self.rows:
                return row
            raise OverflowError("too many quotes")

    monkeypatch.setattr(csv, "reader", Broken)
    with pytest.raises(ReaderError, match=r"t\.csv, line 3: .*too many quotes"):
        list(open_csv("a,b\n1,2\n", ReaderError, name="t.csv").rows)
