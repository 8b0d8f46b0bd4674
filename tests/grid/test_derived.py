"""Tests of dkrls_cli.grid.derived."""

from __future__ import annotations

import numpy as np
import pytest

from dkrls_cli.errors import SettingError
from dkrls_cli.grid.axes import axis_of, text_axis
from dkrls_cli.grid.derived import (
    cell_numbers,
    cells_on,
    derivative_variable,
    mean_variable,
)
from dkrls_cli.grid.inherit import bounds_on
from dkrls_cli.grid.style import Companion, Style, source_coordinates

LAT = axis_of("lat", [-60.0, 0.0, 60.0], {"units": "degrees_north"})
LON = axis_of("lon", np.arange(0.0, 360.0, 90.0), {"units": "degrees_east"})
TIME = axis_of("time", np.array(["2020-01-01", "2020-01-03"], "datetime64[ns]"))
AIR = {
    "units": "K",
    "standard_name": "air_temperature",
    "valid_min": 0.0,
    "cell_methods": "area: mean",
}


@pytest.mark.parametrize(
    ("along", "per_metre", "name", "units"),
    [
        ([TIME], False, "dt_dtime", "K day-1"),
        ([LAT], False, "dt_dlat", "K degrees_north-1"),
        ([LAT, LAT], True, "d2t_dlat2", "K m-2"),
        ([LON, TIME], True, "d2t_dlon_dtime", "K m-1 day-1"),
        ([axis_of("p", [1.0], {"units": "kg m-3"})], False, "dt_dp", "K (kg m-3)-1"),
        ([axis_of("x", [1.0])], False, "dt_dx", None),
    ],
)
def test_names_and_units_of_derivatives(along, per_metre, name, units):
    found, attrs = derivative_variable("t", AIR, along, per_metre=per_metre)
    assert found == name
    assert attrs.get("units") == units
    assert "valid_min" not in attrs
    assert "cell_methods" not in attrs
    tendency = along == [TIME]
    assert attrs.get("standard_name") == ("tendency_of_air_temperature" if tendency else None)


def test_units_of_pure_numbers():
    assert derivative_variable("f", {"units": "1"}, [TIME])[1]["units"] == "day-1"
    assert "units" not in derivative_variable("f", {}, [TIME])[1]


def test_cells_lie_half_way_or_are_the_bounds_of_the_source():
    assert cells_on(LAT, Style()).tolist() == [[-90, -30], [-30, 30], [30, 90]]
    single = axis_of("z", np.array([0.1, 0.2], np.float32))
    assert cells_on(single, Style())[0] == pytest.approx([0.05, 0.15], rel=1e-6)
    own = Companion(("lat", "bnds"), np.array([[-80.0, -20], [-20, 10], [10, 70]]))
    style = Style(
        companions={"b": own},
        bounds={"lat": ("bounds", "b")},
        coordinates=source_coordinates([LAT]),
    )
    assert cells_on(LAT, style).tolist() == own.values.tolist()


def test_no_cells_are_refused():
    with pytest.raises(SettingError, match="text labels"):
        cells_on(text_axis("site", ["a", "b"]), Style())
    for values in ([1.0], [1.0, 3.0, 2.0]):
        with pytest.raises(SettingError, match="are not known"):
            cells_on(axis_of("x", values), Style())


def test_cells_of_longitude_may_be_given_turns_away():
    cells = np.array([[359.5, 0.5], [45.0, 135.0], [-225.0, -135.0], [225.0, 315.0]])
    low, high = cell_numbers(LON, cells)
    assert low.tolist() == [-0.5, 45.0, 135.0, 225.0]
    assert high.tolist() == [0.5, 135.0, 225.0, 315.0]
    whole = cell_numbers(LON.take([2]), np.array([[0.0, 360.0]]))
    assert [ends.tolist() for ends in whole] == [[0.0], [360.0]]


@pytest.mark.parametrize("cell", [(1.0, 1.0), (np.nan, 1.0), (-200.0, 200.0)])
def test_cells_without_width_or_beyond_a_turn_are_refused(cell):
    with pytest.raises(SettingError, match="Invalid cell"):
        cell_numbers(LON.take([0]), np.array([cell]))


def test_means_have_cell_methods_and_bounds():
    cells = {"lat": cells_on(LAT, Style())}
    beside = {
        "name": Companion(("lat",), np.array(["a", "b", "c"])),
        "x": Companion((), np.array(1)),
    }
    style = Style(companions=beside, coordinates={"lat": np.array([1.0, 2.0, 3.0])})
    attrs, found = mean_variable(AIR, style, [TIME, LAT], cells)
    assert attrs["cell_methods"] == "area: mean lat: mean"
    assert set(found.companions) == {"x", "lat_bnds"}  # names were those of other latitudes
    written = bounds_on(found, LAT)
    assert written is not None
    assert written[:2] == ("bounds", "lat_bnds")
    assert written[2].values.tolist() == cells["lat"].tolist()
    again, _ = mean_variable(attrs, found, [TIME, LAT], cells)
    assert again["cell_methods"] == attrs["cell_methods"]
