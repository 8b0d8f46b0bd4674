"""Small tables go to text and back."""

from dkrls_cli.files.text.csv.small import csv_rows, csv_text


def test_small_tables_go_to_text_and_back():
    rows = [{"a": 1, "b": float("nan"), "c": None}, {"a": "x,y", "b": 0.5, "c": 'say "z"'}]
    text = csv_text(rows)
    assert text.splitlines()[0] == "a,b,c"
    assert csv_rows(text) == [
        {"a": "1", "b": "", "c": ""},
        {"a": "x,y", "b": "0.5", "c": 'say "z"'},
    ]
