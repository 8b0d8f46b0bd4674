"""A copy of a table differs from it in its filled cells and in nothing else."""

import csv
import gzip
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.files.reading import open_file
from dkrls_cli.files.text.tables import read_table

WIDE = """\
# monthly means, by hand
year;"Jan";Feb ; Mar

1952; 1.50;2;3
1950;2.5;NA;3.1
# a gap
1951;1.7;2.2;
1953;1.6;"";3.20"""

LONG = '''\
id,time,site,note,flow
a,2020-01-01,s1,"x, y",1.50
b,2020-01-01,"s,2","say ""hi""",NA
c,2020-01-03,s1,,2.5
# later
d,2020-01-02,"s,2",, inf
'''


@pytest.fixture
def copy(tmp_path):
    """Copy a table with some cells of its grid filled, given by their coordinates."""

    def filled(text, cells, *, std=None, name="t.csv", **options):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        source = open_file(str(path), **options)
        grid = source.grid()
        mask, values = np.zeros(grid.values.shape, bool), grid.values.copy()
        for where, value in cells.items():
            place = tuple(axis.texts.index(at) for axis, at in zip(grid.axes, where, strict=True))
            mask[place], values[place] = True, value
        spread = np.where(mask, 0.25, np.where(np.isnan(values), np.nan, 0.0))
        errors = None if std is None else (std, spread)
        stream = io.StringIO(newline="")
        source.table.write(stream, mask, values, errors)
        return stream.getvalue()

    return filled


def test_a_wide_table_stays_wide_and_only_its_missing_cells_change(copy):
    found = copy(WIDE, {("1950", "Feb"): 0.1, ("1951", "Mar"): 1e-7, ("1953", "Feb"): -2.0})
    expected = WIDE.replace("NA", "0.1").replace("2.2;", "2.2;1e-07").replace('""', "-2.0")
    assert found == expected


def test_cells_that_were_not_filled_stay_as_they_are(copy):
    assert copy(WIDE, {}) == WIDE
    assert copy(LONG, {}, var="flow", levels=["site", "time"]) == LONG


def test_a_long_table_keeps_its_rows_and_absent_cells_follow(copy):
    cells = {("s,2", "2020-01-01"): 0.5, ("s1", "2020-01-02"): 3.0, ("s,2", "2020-01-03"): 4.0}
    found = copy(LONG, cells, var="flow", levels=["site", "time"])
    head = LONG.replace(",NA", ",0.5")
    assert found == head + ",2020-01-02,s1,,3.0\n" + ',2020-01-03,"s,2",,4.0\n'


def test_standard_errors_are_a_last_column_of_a_long_table(copy):
    cells = {("s,2", "2020-01-01"): 0.5, ("s1", "2020-01-02"): 3.0}
    found = copy(LONG, cells, std="flow_std", var="flow", levels=["site", "time"])
    rows = list(csv.reader(line for line in found.splitlines() if not line.startswith("#")))
    assert rows[0] == ["id", "time", "site", "note", "flow", "flow_std"]
    assert [row[-2:] for row in rows[1:]] == [
        ["1.50", "0.0"],
        ["0.5", "0.25"],
        ["2.5", "0.0"],
        [" inf", ""],
        ["3.0", "0.25"],
    ]


def test_standard_errors_have_no_room_in_a_wide_table(copy):
    with pytest.raises(SettingError, match=r"no room for standard errors.*\.nc or \.jsonl"):
        copy(WIDE, {}, std="t_std")


def test_a_column_of_the_name_of_the_standard_errors_is_refused(copy):
    with pytest.raises(InputError, match="column 'v_std' already"):
        copy("x,v_std,v\n1,1,2\n2,1,3\n", {}, std="v_std", var="v", levels=["x"])


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_separators_and_line_ends_are_kept(copy, end, mark):
    text = "x,y,v\n1,a,\n1,b,2\n2,a,3\n".replace(",", mark).replace("\n", end)
    found = copy(text, {("1", "a"): 1.0, ("2", "b"): 4.0})
    row = f"2{mark}b{mark}4.0{end}"
    assert found == text.replace(f"a{mark}{end}", f"a{mark}1.0{end}", 1) + row
    whole = text.removesuffix(end)
    assert copy(whole, {("2", "b"): 4.0}) == whole + end + row
    assert copy(whole, {}) == whole


def test_compressed_tables_and_byte_order_marks(copy):
    text = "x,y,v\n1,a,\n1,b,2\n2,a,3\n2,b,4\n"
    right = text.replace("a,\n", "a,1.0\n")
    assert copy(gzip.compress(text.encode()), {("1", "a"): 1.0}, name="t.csv.gz") == right
    assert copy(text.encode("utf-8-sig"), {("1", "a"): 1.0}) == "\ufeff" + right


def test_a_file_that_has_changed_meanwhile_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,v\n1,2\n2,3\n")
    source = open_file(str(path))
    path.write_text("x,v\n1,2\n2,3\n3,4\n")
    with pytest.raises(InputError, match="has changed while it was filled"):
        source.table.write(io.StringIO(), np.zeros(2, bool), np.zeros(2))


CELLS = st.one_of(
    st.sampled_from(["", "NA", "1.50", " 2", '"3"', "-", "4e1"]), st.floats(-9, 9).map(repr)
)


@given(st.data(), st.sampled_from(["wide", "long"]), st.sampled_from([0, 10**9]))
def test_the_copy_reads_as_the_filled_grid(tmp_path_factory, data, kind, large):
    """Whatever the cells: what is filled reads as filled, all other cells as before."""
    rows, columns = data.draw(st.integers(1, 4)), data.draw(st.integers(2, 4))
    texts = [[data.draw(CELLS) for _ in range(columns)] for _ in range(rows)]
    if kind == "wide":
        lines = [",".join(["r", *(f"s{c}" for c in range(columns))])]
        lines += [",".join([f"k{r}", *texts[r]]) for r in range(rows)]
    else:
        lines = ["r,note,c,v"]
        lines += [
            f"k{r},n{r},s{c},{texts[r][c]}"
            for r in range(rows)
            for c in range(columns)
            if r == 0 or c == 0 or data.draw(st.booleans())
        ]
    path = tmp_path_factory.mktemp("copy") / "t.csv"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    options = {"levels": ["r", "c"]} | ({} if kind == "wide" else {"var": "v"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dkrls_cli.files.text.tables.LARGE", large)
        source = open_file(str(path), **options)
        grid = source.grid()
        picked = data.draw(hnp.arrays(bool, grid.values.shape))
        mask = np.isnan(grid.values) & picked
        values = np.where(mask, 7.25, grid.values)
        with path.with_name("o.csv").open("w", encoding="utf-8", newline="") as stream:
            source.table.write(stream, mask, values)
        again, _ = read_table(str(path.with_name("o.csv")), options.get("var"), ["r", "c"])
    np.testing.assert_array_equal(again.values, values)
    assert [axis.texts for axis in again.axes] == [axis.texts for axis in grid.axes]
    before, after = path.read_text().splitlines(), path.with_name("o.csv").read_text().splitlines()
    same = sum(line in after for line in before)
    assert same >= len(before) - int(mask.sum())
