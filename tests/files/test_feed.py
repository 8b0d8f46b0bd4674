"""Rows become slices, each as soon as it is complete, or are refused by their line."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dkrls_cli.errors import InputError
from dkrls_cli.files.feed import Feed, NewSlice
from dkrls_cli.grid.axes import Axis, axis_of, text_axis
from dkrls_cli.grid.calendars import TimeScale

AXES = [
    axis_of("t", np.arange(3.0)),
    axis_of("x", np.array([0.1, 0.2])),
    text_axis("s", ["a", "b"]),
]


def feed(text: str, axes: list[Axis] | None = None, grows: int = 0) -> Feed:
    return Feed(io.StringIO(text), list(axes or AXES), grows, "v", "it")


def gathered(text: str, axes: list[Axis] | None = None, grows: int = 0) -> list[NewSlice]:
    return list(feed(text, axes, grows).slices())


def long_rows(coordinates: list[Any], skip: int = -1) -> list[dict[str, Any]]:
    cells = [(x, s) for x in (0.1, 0.2) for s in "ab"]
    rows = [
        {"t": t, "x": x, "s": s, "v": round(t + x + (s == "b"), 6)}
        for t in coordinates
        for x, s in cells
    ]
    return [row for i, row in enumerate(rows) if i != skip]


def as_csv(rows: list[dict[str, Any]]) -> str:
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    return "\n".join(lines) + "\n"


def as_json(rows: list[dict[str, Any]]) -> str:
    return "\n".join(map(json.dumps, rows)) + "\n"


@pytest.mark.parametrize(("write", "form"), [(as_csv, "csv"), (as_json, "jsonl")])
@pytest.mark.parametrize("before", ["", "# a comment\n\n"])
def test_rows_become_slices(write: Any, form: str, before: str) -> None:
    source = feed(before + write(long_rows([5.0, 6.5], skip=6)))
    found = list(source.slices())
    assert source.form == form
    assert [new.axis.numbers.tolist() for new in found] == [[5.0], [6.5]]
    assert found[0].values == pytest.approx(np.array([[[5.1, 6.1], [5.2, 6.2]]]))
    assert np.isnan(found[1].values).tolist() == [[[False, False], [True, False]]]


@pytest.mark.parametrize("write", [as_csv, as_json])
def test_a_slice_is_handed_on_with_its_last_cell(write: Any) -> None:
    asked: list[str] = []

    def lines() -> Iterator[str]:
        for line in write(long_rows([5.0, 6.0])).splitlines(keepends=True):
            asked.append(line)
            yield line

    next(Feed(lines(), list(AXES), 0, "v", "it").slices())
    assert len(asked) == (5 if write is as_csv else 4)


def test_cells_may_come_in_any_order_and_the_growing_axis_stand_anywhere() -> None:
    rows = long_rows([5.0])
    expected = gathered(as_csv(rows))[0].values
    np.testing.assert_array_equal(gathered(as_csv(rows[::-1]))[0].values, expected)
    turned = [AXES[1], AXES[2], AXES[0]]
    found = gathered(as_csv(rows), turned, grows=2)[0].values
    np.testing.assert_array_equal(found, np.moveaxis(expected, 0, 2))


def test_a_model_of_one_dimension_has_slices_of_one_cell() -> None:
    found = gathered("t,v\n5,1\n6,2\n6.5,NA\n", [AXES[0]])
    assert [new.values.tolist() for new in found[:2]] == [[1.0], [2.0]]
    assert np.isnan(found[2].values).all()


def test_a_coordinate_that_comes_again_is_a_slice_of_its_own() -> None:
    text = as_csv(long_rows([5.0, 6.0, 5.0]))
    assert [new.axis.numbers.tolist() for new in gathered(text)] == [[5.0], [6.0], [5.0]]


def test_spellings_of_one_date_are_one_slice_also_beside_each_other() -> None:
    axes = [Axis("t", np.arange(3.0), time=TimeScale("days since 2020-01-01")), AXES[1]]
    first = "2020-01-11T00:00,0.1,1\n2020-01-11T00:00:00Z,0.2,2\n"
    second = "2020-01-12 06:00,0.2,3\n2020-01-12T05:00-01:00,0.1,4\n"
    part = "2020-01-13,0.2,5\n"
    found = gathered("t,x,v\n" + first + second + part + "2020-01-14,0.1,6\n", axes)
    assert [new.axis.numbers.tolist() for new in found] == [[10.0], [11.25], [12.0], [13.0]]
    assert [new.values.ravel().tolist() for new in found[:2]] == [[1.0, 2.0], [4.0, 3.0]]
    read = feed("t,x,v\n" + part + "no date,0.1,6\n", axes).slices()
    assert next(read).axis.numbers.tolist() == [12.0]
    with pytest.raises(InputError, match="no date"):
        next(read)


def test_the_first_mark_of_missing_cells_is_told_of() -> None:
    source = feed("t,v\n5,-999\n6,2\n7,3\n8,9999\n9,-999\n", [AXES[0]])
    told = [source.suspect for _ in source.slices()]
    assert told[:3] == ["", "", ""]
    assert told[3].startswith("1 cell of 'v' holds 9999, and all others 2 to 3:")
    assert told[4] == told[3]


@pytest.mark.parametrize("value", ["NA", "", " nan ", "inf", "1e37", "-9.97e36"])
def test_missing_values_and_other_columns(value: str) -> None:
    text = f"site,t,x,s,v\nz,5,0.1,a,{value}\nz,5,0.1,b,9e36\nz,5,0.2,a,3\nz,5,0.2,b,4\n"
    (new,) = gathered(text)
    assert np.isnan(new.values).tolist() == [[[True, False], [False, False]]]
    (new,) = gathered('{"t": 5, "x": 0.1, "s": "a", "v": null}\n')
    assert np.isnan(new.values).all()


def test_the_only_other_column_holds_the_values_whatever_its_name() -> None:
    assert gathered("t,x,s,w\n5,0.1,a,1\n")[0].values[0, 0, 0] == 1
    assert gathered('{"t": 5, "x": 0.1, "s": "a", "w": 1}\n')[0].values[0, 0, 0] == 1


def test_coordinates_may_have_blanks_around_them() -> None:
    assert gathered("t,x,s,v\n 5 , 0.1 , a ,1\n")[0].axis.numbers.tolist() == [5.0]


def test_new_labels_get_the_next_positions() -> None:
    axes = [text_axis("run", ["p", "q"]), axis_of("x", np.array([0.1]))]
    text = "run,x,v\nr,0.1,1\ns,0.1,2\nr,0.1,3\nn_1,0.1,4\n"
    found = [new.axis.numbers.tolist() for new in gathered(text, axes)]
    assert found == [[2.0], [3.0], [2.0], [4.0]]


def test_dates_are_read_in_the_terms_of_the_model() -> None:
    time = Axis("t", np.arange(3.0), time=TimeScale("days since 2020-01-01"))
    assert gathered("t,v\n2020-01-11,1\n", [time])[0].axis.numbers.tolist() == [10.0]


def test_numbers_are_labels_where_the_model_has_labels() -> None:
    axes = [AXES[0], text_axis("n", ["1", "2"])]
    text = '{"t": 5, "n": 2, "v": 7}\n{"t": 5, "n": 1, "v": 6}\n'
    assert gathered(text, axes)[0].values.tolist() == [[6.0, 7.0]]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is empty"),
        ("t,x,v\n", "it has no column 's'. It has t, x, v"),
        ("t,x,s,w,u\n1,0.1,a,1,1\n", "no column 'v' of values. Besides t, x, s it has w, u"),
        ("t,x,s\n", "no column 'v' of values. Besides t, x, s it has none"),
        ("t,x,s,v\n5,0.1,a\n", "Line 2 of it has 3 cells, the header 4"),
        ("t,x,s,v\n\n5,0.1,a,1,1\n", "Line 3 of it has 5 cells, the header 4"),
        ("t,x,s,v\n5,0.1,a,much\n", "Line 2 of it has 'much' for a value"),
        ("t,x,s,v\n5,0.1,a,1_0\n", "Line 2 of it has '1_0' for a value"),
        ("t,x,s,v\n5,0.1,c,1\n", "Line 2 of it: .* has no 'c'"),
        ("t,x,s,v\n5,0.3,a,1\n", "Line 2 of it: the model has no x 0.3"),
        ("t,x,s,v\n5,0_1,a,1\n", "Line 2 of it: '0_1' is not a number"),
        ("t,x,s,v\nsoon,0.1,a,1\n", "Line 2 of it: 'soon' is not a number"),
        ("t,x,s,v\nnan,0.1,a,1\n", "Line 2 of it: A coordinate of 't' is nan"),
        ("t,x,s,v\n5,0.1,a,1\n5,0.1,a,2\n", "Line 3 of it gives a cell of its slice again"),
        ("t,x,s,v\n5,0.1,a,1\n7_0,0.1,a,2\n", "Line 3 of it: '7_0' is not a number"),
        ('{"t": 5}\n', "it has no column 'x'"),
        ('{"t": 5, "x": 0.1, "s": "a", "v": 1}\n{"t": 5}\n', "Line 2 of it has no 'x'"),
        ('{"t": 5, "x": 0.1, "s": "a", "v": 1}\n\n[1]\n', "Line 3 of it is no object"),
        ('{"t": 5, "x": 0.1, "s": "a", "v": 1}\n{"t"\n', "Line 2 of it is not JSON"),
        ('{"t": null, "x": 0.1, "s": "a", "v": 1}\n', "Line 1 of it has null for a coordinate"),
        ('{"t": true, "x": 0.1, "s": "a", "v": 1}\n', "has true for a coordinate of 't'"),
        ('{"t": 5, "x": 0.1, "s": "a", "v": true}\n', "has 'True' for a value"),
        ('{"t": 5, "x": 0.1, "s": "a", "v": [1]}\n', "for a value"),
        ('{"t": 5, "x": 0.1, "s": "a", "v": 1' + "0" * 400 + "}\n", "for a value"),
    ],
)
def test_what_is_no_slice_is_refused_by_line(text: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        gathered(text)


def test_slices_before_a_wrong_line_are_handed_on() -> None:
    slices = feed(as_csv(long_rows([5.0])) + "6,0.1,a\n").slices()
    assert next(slices).axis.numbers.tolist() == [5.0]
    with pytest.raises(InputError, match="Line 6"):
        next(slices)


@pytest.mark.parametrize("line", ['{"t":' * 10**5, "[" * 10**5])
def test_deep_lines_are_refused(line: str) -> None:
    text = f'{{"t": 3, "x": 0.1, "s": "a", "v": 1}}\n{line}\n'
    with pytest.raises(InputError, match=r"Line 2 of it is nested too deeply|is not JSON"):
        gathered(text)


def test_an_endless_line_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dkrls_cli.files.feed._LONGEST_LINE", 30)
    assert len(gathered("t,x,s,v\n3,0.1,a,1\n")) == 1
    with pytest.raises(InputError, match="it has a line of more than 30 letters"):
        gathered("t,x,s,v\n3,0.1,a," + "1" * 40)


def test_values_that_are_no_usable_numbers_are_counted() -> None:
    stream = feed("t,x,s,v\n3,0.1,a,1e300\n3,0.2,a,inf\n3,0.1,b,NA\n3,0.2,b,5\n4,0.1,a,-1e37\n")
    found = list(stream.slices())
    assert stream.unusable == 2  # inf is a way to say that a value is missing
    assert np.isnan(found[0].values).sum() == 3
    assert np.isnan(found[1].values).all()


@pytest.mark.parametrize("t", ["1e300", "9" * 40])
def test_dates_that_no_calendar_has_are_refused(t: str) -> None:
    days = Axis("t", np.arange(3.0), time=TimeScale("days since 2000-01-01"))
    for text in (f"t,v\n{t},1\n", f'{{"t": {t}, "v": 1}}\n'):
        with pytest.raises(InputError, match=r"Line \d of it"):
            gathered(text, [days])
