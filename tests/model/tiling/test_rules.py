"""Which cells of a part are filled, beside what is decided on the whole grid."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from tiled_grids import daily, source_of

from dkrls_cli.errors import SettingError
from dkrls_cli.grid.cf import hierarchy_of
from dkrls_cli.grid.grid import as_grid
from dkrls_cli.model.filling.cells import choose_cells
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.tiling.rules import land_axes, make_rules
from dkrls_cli.model.tiling.scan import PartReader, scan


def choose_in_parts(grid, outer, ends, mask=None, max_gap=None, within=None):
    """Return the cells to fill and counts of those left, from parts that end at some rows."""
    hierarchy = hierarchy_of(grid.axes, None)
    along = land_axes(grid.axes, hierarchy)
    summary = scan(PartReader(source_of(grid), outer), [along] if along else [])
    rules, _ = make_rules(grid, hierarchy, outer, summary, mask, max_gap, within, None)
    missing, cells, left = np.isnan(grid.values), [], {}
    for start, stop in zip([0, *ends], [*ends, grid.values.shape[outer]], strict=True):
        rows = rules.rows(start, stop)
        found, counts = rules.choose(np.take(missing, rows, outer), rows, slice(start, stop))
        cells.append(found)
        left = {reason: left.get(reason, 0) + count for reason, count in counts.items()}
    return np.concatenate(cells, outer), {reason: count for reason, count in left.items() if count}


@given(
    seed=st.integers(0, 99),
    ends=st.sets(st.integers(1, 29), max_size=6),
    gap=st.sampled_from([1.0, 2.0, 3.5, 9.0]),
    near=st.sampled_from([{"time": 1.0}, {"time": 2.5, "lon": 1.0}, 1.0, 2.0]),
    falling=st.booleans(),
    outer=st.sampled_from([0, 1]),
)
def test_parts_decide_as_the_whole_grid(seed, ends, gap, near, falling, outer):
    data = daily(30, 4, 3, seed=seed, share=0.6)
    data = data.isel(time=slice(None, None, -1)) if falling else data
    data = data.transpose("time", "lat", "lon")
    cuts = sorted(end for end in ends if end < data.shape[outer])
    ring = data.assign_coords(lon=[0.0, 120.0, 240.0])
    for array, asked in (
        (data, {"max_gap": {"time": gap}}),
        (data, {"within": near}),
        (data, {"max_gap": {"lat": gap}}),
        (ring, {"max_gap": {"lon": 240.0}}),
    ):
        grid = as_grid(array)
        whole = choose_cells(grid, Settings(), **asked)
        cells, left = choose_in_parts(grid, outer, cuts, **asked)
        assert np.array_equal(cells, whole.cells)
        assert left == whole.left


@pytest.mark.parametrize(
    ("dims", "along"),
    [
        (("time", "lat", "lon"), (0,)),
        (("lat", "time", "member"), (1, 2)),
        (("x1", "time"), (1,)),
        (("lat", "lon"), None),
    ],
)
def test_land_is_told_along_what_is_no_place(dims, along):
    rng = np.random.default_rng(0)
    values = rng.standard_normal([6] * len(dims))
    values[rng.random(values.shape) < 0.3] = np.nan
    values[..., 2] = np.nan
    values[3] = np.nan
    grid = as_grid(xr.DataArray(values, {d: np.arange(6.0) for d in dims}, dims, "v"))
    assert land_axes(grid.axes, hierarchy_of(grid.axes, None)) == along
    if along is not None:
        whole = choose_cells(grid, Settings())
        cells, left = choose_in_parts(grid, dims.index("time"), [2, 3])
        assert np.array_equal(cells, whole.cells)
        assert left == whole.left


def test_texts_without_data_stay_missing():
    values = np.random.default_rng(0).standard_normal((5, 4, 8))
    values[2] = values[:, 1, 3] = np.nan
    grid = as_grid(
        xr.DataArray(
            values,
            {"site": list("abcde"), "lat": np.arange(4.0), "time": np.arange(8.0)},
            ["site", "lat", "time"],
        )
    )
    whole = choose_cells(grid, Settings())
    cells, left = choose_in_parts(grid, 2, [3])
    assert np.array_equal(cells, whole.cells)
    assert left == whole.left


def test_impossible_rules_are_refused():
    grid = as_grid(daily())
    with pytest.raises(SettingError, match="Invalid longest gap -1"):
        choose_in_parts(grid, 0, [], max_gap={"time": -1.0})
    with pytest.raises(SettingError, match="Unknown mask 'sea'"):
        choose_in_parts(grid, 0, [], mask="sea")
