"""Tables are long or wide as they are named or look; what looks like neither is refused."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from sample_files import coordinates

from dkrls_cli.errors import InputError
from dkrls_cli.files.text.columns import split_by_row
from dkrls_cli.files.text.layouts import choose_layout, count_cells, sizes_text
from dkrls_cli.files.text.tables import read_table
from dkrls_cli.grid.calendars import TimeScale

DAYS = TimeScale("days since 1970-01-01", "proleptic_gregorian")
SENSORS = Path(__file__).parents[3] / "sample_data" / "sensors.csv"
EL_NINO = Path(__file__).parents[4] / "shared" / "data" / "elnino.csv"
LONG = "x,y,v\n1,a,10\n1,b,20\n2,a,30\n2,b,40\n"
WIDE = "year,JAN,FEB,MAR\n1950,1.5,2,3\n1951,4,5,6\n1952,7,8,9.5\n"


def test_a_wide_table_has_one_dimension_in_its_header(read):
    grid, notes = read(WIDE, name="nino.csv")
    assert (grid.name, grid.dims) == ("nino", ("year", "column"))
    assert [coordinates(axis) for axis in grid.axes] == [[1950, 1951, 1952], ["JAN", "FEB", "MAR"]]
    assert grid.values.tolist() == [[1.5, 2, 3], [4, 5, 6], [7, 8, 9.5]]
    assert notes == ["Read as a wide table: rows 'year', header 'column'."]


def test_one_slice_with_its_date_for_a_header_is_wide(read):
    grid, _ = read("lat,2020-01-01\n10,1\n20,2\n")
    assert grid.dims == ("lat", "column")
    assert grid.values.shape == (2, 1)


def test_variables_of_wide_tables_are_named_after_the_file_or_as_asked(read, pipe):
    assert read(WIDE, name="a.b.csv")[0].name == "a.b"
    assert read(gzip.compress(WIDE.encode()), name="t.csv.gz")[0].name == "t"
    assert read(WIDE, "sst")[0].name == "sst"
    pipe(WIDE.encode())
    assert read_table("-")[0].name == "values"


def test_a_column_of_values_that_is_named_makes_a_table_long(read):
    grid, notes = read("v,x,y\n1,1,1\n2,1,2\n3,2,1\n4,2,2\n", "v")
    assert grid.dims == ("x", "y")
    assert grid.values.tolist() == [[1, 2], [3, 4]]
    assert notes == ["Read as a long table: 'v' by x, y."]


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("lat,temp,lon", "temp"),
        ("sst (K),Lat,LON (deg)", "sst (K)"),
        ("row,sst,year", "sst"),
        ("lat,sensor,height", "height"),  # a height may be what was measured
        ("x,y,z", "z"),
        ("lat,u,v", "v"),
        ("u,v,lat", "lat"),  # of two, none can be told
    ],
)
def test_the_values_are_the_last_column_unless_that_is_a_coordinate(read, header, value):
    rows = [[str(a), str(b)] for a in range(3) for b in range(4)]
    for count, row in enumerate(rows):
        row.insert(header.split(",").index(value), f"{count}.5")
    grid, _ = read("\n".join([header, *map(",".join, rows)]))
    assert grid.name == value
    assert grid.values.tolist() == (np.arange(12.0).reshape(3, 4) + 0.5).tolist()


def test_dimensions_that_are_named_come_in_that_order(read):
    grid, _ = read(LONG, dims=["y", "x"])
    assert grid.dims == ("y", "x")
    assert grid.values.tolist() == [[10, 30], [20, 40]]


def test_the_header_of_a_wide_table_can_be_given_a_name(read):
    across, _ = read(WIDE, dims=["year", "month"])
    down, _ = read(WIDE, "sst", ["month", "year"])
    assert (across.dims, down.dims, down.name) == (("year", "month"), ("month", "year"), "sst")
    np.testing.assert_array_equal(across.values, down.values.T)


def test_columns_that_are_neither_are_left_out_and_said(read):
    text = "x,flag,v,w\n1,ok,10,5\n2,bad,20,6\n"
    grid, notes = read(text, "v", ["x"])
    assert grid.values.tolist() == [10, 20]
    assert notes[1] == "Columns left out: flag, w."


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("options", [{}, {"var": "v"}])
def test_row_numbers_of_other_programs_are_left_out(read, start, options):
    header, *rows = LONG.splitlines()
    numbered = "\n".join([f",{header}", *(f"{i + start},{row}" for i, row in enumerate(rows))])
    grid, notes = read(numbered, **options)
    assert grid.dims == ("x", "y")
    assert notes[1] == "Columns left out: row."


def test_row_numbers_leave_the_name_row_to_another_column(read):
    text = ",row,col,v\n0,5,1,10\n1,5,2,20\n2,6,1,30\n3,6,2,40\n"
    for grid, notes in (read(text), read(text, "v", ["row", "col"])):
        assert grid.values.tolist() == [[10, 20], [30, 40]]
        assert notes[1] == "Columns left out: row_number."


def test_a_small_wide_table_of_numbers_is_not_taken_for_a_long_one(read):
    rows = "\n".join(f"{t},{t * t / 7},{1 / (t + 1)}" for t in range(10))
    assert read(f"t,north,south\n{rows}\n")[0].values.shape == (10, 2)
    assert read(f",north,south\n{rows}\n")[0].values.shape == (10, 2)
    assert read("t,north,south\n0,1,2\n")[0].values.shape == (1, 2)


def test_a_long_table_with_one_cell_per_slice_is_not_taken_for_a_wide_one(read):
    rows = "\n".join(f"{t},{t % 3},{t / 7}" for t in range(10))
    assert read(f"t,sensor,v\n{rows}\n")[0].values.shape == (10, 3)


def test_a_long_table_may_be_as_empty_as_one_in_twenty(read):
    def diagonal(size):
        return "x,y,v\n" + "".join(f"a{i},b{i},{i}\n" for i in range(size))

    assert read(diagonal(20))[0].values.shape == (20, 20)
    with pytest.raises(InputError, match="21 rows for the cells of x 21 x y 21: too few"):
        read(diagonal(21))
    assert read(diagonal(21), dims=["x", "y"])[0].values.shape == (21, 21)
    with pytest.raises(InputError, match=r"scattered points. Expected a grid"):
        read(diagonal(101), dims=["x", "y"])


def test_sample_sensors_are_long():
    grid, _ = read_table(str(SENSORS))
    assert (grid.name, grid.dims, grid.values.shape) == (
        "temperature",
        ("time", "sensor"),
        (192, 12),
    )
    assert grid.axes[0].time == DAYS
    assert np.isnan(grid.values).sum() == 192 * 12 - 2233


def test_months_in_a_header_are_wide(read):
    grid, _ = read("YEAR,JAN,FEB\n1950,23.11,24.2\n1951,24.19,25.28\n", name="elnino.csv")
    assert (grid.name, grid.dims, grid.values.shape) == ("elnino", ("YEAR", "column"), (2, 2))
    assert grid.axes[0].dtype == "int64"
    assert grid.values[0, 0] == 23.11


@pytest.mark.skipif(not EL_NINO.exists(), reason="development data are not here")
def test_el_nino_is_wide():
    grid, _ = read_table(str(EL_NINO))
    assert (grid.name, grid.dims, grid.values.shape) == ("elnino", ("YEAR", "column"), (61, 12))
    assert grid.axes[0].dtype == "int64"
    assert coordinates(grid.axes[1])[:2] == ["JAN", "FEB"]
    assert grid.values[0, 0] == 23.11


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ("name", "column 'b' holds 'n21' on line 23"),
        ("again", "'0' stands in its first column more than once"),
    ],
)
def test_neither_long_nor_wide_is_said_with_what_to_do(read, text, trouble):
    rows = [[str(i), f"{i / 7}", f"{i / 3}"] for i in range(40)]
    if text == "name":
        rows[21][2] = "n21"
    else:
        rows[30][0] = "0"
    table = "a,x,b\n" + "\n".join(map(",".join, rows))
    with pytest.raises(
        InputError, match=f"{len({r[0] for r in rows})} different a, 40 .*{trouble}.*name the"
    ):
        read(table)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"var": "w"},
            "no column 'w', .* '1' stands in its first column more than once. It has x,",
        ),
        ({"dims": ["x", "z"]}, "no column 'z', and is no wide table.*It has x, y, v"),
        ({"dims": ["p", "q"]}, "no column 'p'"),
        ({"dims": ["x", "y"], "var": "w"}, "no column 'w'"),
        ({"dims": ["x", "new"], "var": "v"}, "no column 'new'"),
        ({"dims": ["x", "y", "v"]}, "Besides x, y, v, .* has no column.* by its name"),
        ({"dims": ["x"]}, "Besides x, .* has y, v. Expected one column of values"),
        ({"dims": ["x", "y"], "var": "y"}, "name one column twice"),
        ({"dims": ["x", "x"], "var": "v"}, "name one column twice"),
        ({"dims": ["x"], "var": "v"}, "two values for x=1.*all dimensions"),
    ],
)
def test_names_that_do_not_fit_are_refused(read, options, message):
    with pytest.raises(InputError, match=message):
        read("x,y,v\n1,a,10\n1,b,20\n2,a,30\n2,b,40\n", **options)


def test_values_among_other_values_want_their_dimensions_named(read):
    rows = "".join(f"{i % 7},{i // 7},{i / 9},{i / 11}\n" for i in range(49))
    with pytest.raises(
        InputError, match=r"too few for all of them to be dimensions of .s..*Name the dim"
    ):
        read(f"x,y,s,t\n{rows}", "s")
    assert read(f"x,y,s,t\n{rows}", "s", ["x", "y"])[0].values.shape == (7, 7)


# Scattered points, wide tables and columns of different quantities


def table_of(header, *columns):
    return (
        header
        + "\n"
        + "".join(",".join(map(str, row)) + "\n" for row in zip(*columns, strict=True))
    )


def random_columns(count, rows):
    return np.random.default_rng(rows).random((count, rows)).round(6)


@pytest.mark.parametrize("rows", [2, 3, 10, 30, 200])
@pytest.mark.parametrize(
    ("header", "points"),
    [
        ("x,t,v", "in x and t with values v"),
        ("lat,lon,temp", "in lat and lon with values temp"),
        ("longitude,latitude,time,sst", "in longitude, latitude and time with values sst"),
        ("x,y,z,value", "in x, y and z with values value"),
    ],
)
def test_scattered_points_are_refused_with_what_they_look_like(read, rows, header, points):
    columns = random_columns(header.count(",") + 1, rows)
    with pytest.raises(InputError, match=f"looks like {rows} scattered points {points}") as caught:
        read(table_of(header, *columns))
    assert f"its rows have {rows} different {header.split(',')[0]}, {rows} different" in str(
        caught.value
    )
    assert "Put the points on a grid first, or name the column of values" in str(caught.value)
    assert caught.value.setting == "var levels"


def test_scattered_points_with_their_values_named_are_refused(read):
    text = table_of("x,t,v", *random_columns(3, 10))
    with pytest.raises(
        InputError, match=r"looks like 10 scattered points in x and t with values v"
    ):
        read(text, "v")
    assert read(text, "v", ["x", "t"])[0].values.shape == (10, 10)


def test_a_few_coordinates_in_common_do_not_make_a_grid(read):
    x, t, v = random_columns(3, 12)
    x[5] = x[2]
    with pytest.raises(
        InputError, match=r"looks like 12 scattered points in x and t.* 11 different x"
    ):
        read(table_of("x,t,v", x, t, v))


def test_a_track_in_order_of_time_is_scattered(read):
    lat, lon, sst = random_columns(3, 40)
    with pytest.raises(
        InputError, match=r"40 scattered points in time, lat and lon with values sst"
    ):
        read(table_of("time,lat,lon,sst", range(40), lat, lon, sst))


def test_points_under_names_that_say_nothing_are_scattered_if_in_no_order(read):
    with pytest.raises(InputError, match=r"scattered points.* its first column is in no order"):
        read(table_of("a,b,c", *random_columns(3, 30)))


@pytest.mark.parametrize("rows", [2, 3, 30])
@pytest.mark.parametrize(
    "header",
    ["t,north,south", "year,Jan,Feb,Mar", "time,s1,s2", "date,London,Paris,Rome", "depth,a_1,a_2"],
)
def test_wide_tables_are_still_read(read, rows, header):
    width = header.count(",")
    grid, notes = read(table_of(header, range(rows), *random_columns(width, rows)))
    assert grid.values.shape == (rows, width)
    assert coordinates(grid.axes[1]) == header.split(",")[1:]
    assert notes[0].startswith("Read as a wide table")


def test_a_wide_table_in_no_order_is_read_if_its_header_is_a_series(read):
    ids = np.random.default_rng(0).permutation(50)
    assert read(table_of("id,Jan,Feb", ids, *random_columns(2, 50)))[0].values.shape == (50, 2)


def test_one_month_is_a_column_of_values(read):
    grid, _ = read("year,Jan\n1950,1\n1951,2\n")
    assert (grid.name, grid.dims) == ("Jan", ("year",))


def test_a_wide_table_of_few_different_values_is_not_taken_for_a_long_one(read):
    rain = [i % 4 for i in range(40)]
    for header in ("station,Jan,Feb", "time,s1,s2"):
        assert read(table_of(header, range(40), rain, rain))[0].values.shape == (40, 2)


@pytest.mark.parametrize("rows", [2, 3, 30])
def test_columns_of_different_quantities_are_refused(read, rows):
    one, other = random_columns(2, rows)
    for header in ("time,temp,pressure", "time,p,q"):
        with pytest.raises(
            InputError, match=r"columns of different quantities by 'time'.* Choose one column"
        ) as caught:
            read(table_of(header, range(rows), 10 * one, 990 + 40 * other))
        assert caught.value.setting == "var levels"
    text = table_of("time,temp,pressure", range(rows), 10 * one, 990 + 40 * other)
    assert read(text, "temp", ["time"])[0].values.shape == (rows,)


def test_what_cannot_be_told_is_read_as_its_dimensions_say(read):
    text = table_of("t,x,y,z", range(20), *random_columns(3, 20))
    with pytest.raises(InputError, match=r"scattered points in t, x and y with values z"):
        read(text)
    grid, _ = read(text, dims=["t", "component"])
    assert coordinates(grid.axes[1]) == ["x", "y", "z"]


def test_a_name_for_wide_values_that_is_like_a_column_is_refused(read):
    text = table_of("x,t,temp", *random_columns(3, 30))
    with pytest.raises(
        InputError, match=r"no column 'tmp', and does not look like a wide table.*Did"
    ):
        read(text, "tmp")


def test_row_numbers_before_points_on_one_dimension(read):
    grid, notes = read(table_of(",t,v", range(9), *random_columns(2, 9)))
    assert grid.dims == ("t",)
    assert notes[1] == "Columns left out: row."


def test_a_dimension_may_be_named_by_its_role(read):
    text = "latitude,longitude,v\n1,1,1\n1,2,2\n2,1,3\n2,2,4\n"
    assert read(text, dims=["lon", "lat"])[0].dims == ("longitude", "latitude")
    both = "lat,latitude,v\n1,1,1\n1,2,2\n2,1,3\n2,2,4\n"
    assert read(both, dims=["latitude", "lat"])[0].dims == ("latitude", "lat")


# Layouts


def test_a_long_layout_is_of_columns_of_the_table():
    table = split_by_row(("# c\n" + LONG).encode(), "t.csv")
    layout = choose_layout(table, "v", ["y", "x"])
    x, y, v = table.columns
    assert (layout.dims, layout.value, layout.header) == ([y, x], v, None)
    assert (layout.width, layout.rows, layout.line(3)) == (1, 4, 6)
    assert layout.where(y, 1) == "Line 4 of 't.csv'"
    assert count_cells(layout.dims) == 4


def test_a_wide_layout_has_a_cell_for_every_value():
    layout = choose_layout(split_by_row(WIDE.encode(), "nino.csv"), None, None)
    rows, across = layout.dims
    assert layout.header is across
    assert (layout.width, layout.rows) == (3, 9)
    assert [layout.line(cell) for cell in range(9)] == [2, 2, 2, 3, 3, 3, 4, 4, 4]
    assert rows.codes.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert across.codes.tolist() == [0, 1, 2] * 3
    values = [layout.value.labels[code] for code in layout.value.codes]
    assert values == ["1.5", "2", "3", "4", "5", "6", "7", "8", "9.5"]
    assert layout.where(across, 1) == "The header of 'nino.csv'"
    assert layout.where(rows, 1) == "Line 3 of 'nino.csv'"
    assert layout.where(layout.value, 8) == "Line 4 of 'nino.csv'"


def test_sizes_name_four_dimensions_at_most():
    table = split_by_row(b"a,b,c,d,e,v\n1,2,3,4,5,6\n", "t.csv")
    assert sizes_text(table, table.columns[:4]).endswith(
        "1 rows for the cells of a 1 x b 1 x c 1 x d 1"
    )
    assert sizes_text(table, table.columns[:5]).endswith("d 1 x ...")
