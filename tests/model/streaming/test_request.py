"""Requests beyond memory: planned before anything is read, and answered as in memory."""

import numpy as np
import pytest
import xarray as xr
from chunked_grids import globe, query_of

from dkrls_cli.errors import InputError
from dkrls_cli.files.reading import open_source
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.streaming import request
from dkrls_cli.model.streaming.request import asked_between, plan_regrid, stream_regrid
from dkrls_cli.model.streaming.running import Threads
from dkrls_cli.model.streaming.stages import answer_in_blocks

MAP = {"lat": np.arange(-90.0, 91.0, 7.5), "lon": np.arange(0.0, 360.0, 10.0)}
GIVEN = Settings(kernel="matern52", sigma={"time": 3.0, "lat": 40.0, "lon": 50.0}, ridge=1e-2)
ROOM = 4e9  # bytes, the process of the tests included


def stored(tmp_path, data, chunks=(2, 13, 12), **encoding):
    path = tmp_path / f"{data.sizes['lon']}.nc"
    data.to_netcdf(path, encoding={"f": {"chunksizes": chunks, **encoding}})
    return open_source([str(path)])


def answered(streamed, **how):
    values = np.full(streamed.query.shape, 9e9)

    def sink(part, found):
        values[part] = found[0]

    answer_in_blocks(streamed.boxes, streamed.answers, streamed.plan, Threads(2), sink, **how)
    return values


def test_a_file_is_answered_as_its_grid(tmp_path):
    from dkrls_cli.model.fit import fit_grid

    source = stored(tmp_path, globe())
    streamed = stream_regrid(
        source, GIVEN, lambda m: query_of(m, MAP), [1, 2], std=False, limit=ROOM, workers=2
    )
    expected = query_of(fit_grid(source.grid(), GIVEN), MAP).values()
    np.testing.assert_allclose(answered(streamed), expected, atol=1e-10)
    assert streamed.memory < ROOM


def test_a_repeated_longitude_is_left_out(tmp_path):
    data = globe()
    again = data.isel(lon=[0]).assign_coords(lon=("lon", [360.0], data.lon.attrs))
    source = stored(tmp_path, xr.concat([data, again], "lon"), chunks=(2, 13, 13))
    streamed = stream_regrid(
        source, GIVEN, lambda m: query_of(m, MAP), [1, 2], std=False, limit=ROOM, workers=1
    )
    plain = stream_regrid(
        stored(tmp_path, data),
        GIVEN,
        lambda m: query_of(m, MAP),
        [1, 2],
        std=False,
        limit=ROOM,
        workers=1,
    )
    np.testing.assert_allclose(answered(streamed), answered(plain), atol=1e-10)


def test_an_axis_that_turns_out_to_be_asked_between_is_chosen_as_well(tmp_path):
    source = stored(tmp_path, globe())
    given = {**MAP, "time": [2.5]}
    streamed = stream_regrid(
        source,
        Settings(poles="none"),
        lambda m: query_of(m, given),
        [1, 2],
        std=False,
        limit=ROOM,
        workers=1,
    )
    whole = stream_regrid(
        source,
        Settings(poles="none"),
        lambda m: query_of(m, given),
        [0, 1, 2],
        std=False,
        limit=ROOM,
        workers=1,
    )
    assert streamed.query.model.levels == whole.query.model.levels


def test_a_plan_reads_nothing_and_says_what_the_run_does(tmp_path, monkeypatch):
    source = stored(tmp_path, globe())
    from dkrls_cli.files.stored import reader

    with monkeypatch.context() as patch:
        patch.setattr(reader, "read_part", lambda *a: pytest.fail("read"))
        planned = plan_regrid(
            source,
            Settings(),
            lambda m: query_of(m, MAP),
            [1, 2],
            std=True,
            limit=ROOM,
            workers=2,
        )
    streamed = stream_regrid(
        source, Settings(), lambda m: query_of(m, MAP), [1, 2], std=True, limit=ROOM, workers=2
    )
    assert planned.choosing.bytes_read == streamed.choosing.bytes_read > 0
    assert planned.plan.bytes_read == streamed.plan.bytes_read
    assert planned.plan.bytes_written == streamed.plan.bytes_written
    assert planned.query.shape == streamed.query.shape


@pytest.mark.parametrize("std", [False, True])
def test_what_is_done_with_each_answer_is_counted_once(tmp_path, std, monkeypatch):
    for held in ("held_bytes", "peak_bytes"):  # this process may grow between two plans
        monkeypatch.setattr(request, held, lambda: 1e8)
    source = stored(tmp_path, globe())
    bare, more = (
        plan_regrid(
            source,
            GIVEN,
            lambda m: query_of(m, MAP),
            [1, 2],
            std=std,
            limit=ROOM,
            workers=1,
            beside=beside,
        ).plan
        for beside in (0, 64)
    )
    assert bare.blocks.cuts == more.blocks.cuts
    cells = np.prod(bare.blocks.region)
    assert more.memory - bare.memory == pytest.approx(1.15 * 64 * cells, abs=2)


def test_missing_cells_are_refused(tmp_path):
    data = globe()
    data[3, 2, 1] = np.nan
    source = stored(tmp_path, data)
    with pytest.raises(InputError, match="has missing cells"):
        stream_regrid(
            source,
            Settings(poles="none"),
            lambda m: query_of(m, MAP),
            [1, 2],
            std=False,
            limit=ROOM,
            workers=1,
        )


def test_axes_that_are_asked_at_their_coordinates_pass_through():
    axes = [
        axis_of("time", np.arange(5.0), {}),
        axis_of("lon", np.arange(0.0, 360.0, 30.0), {"units": "degrees_east"}),
    ]
    assert asked_between(axes, {}) == []
    assert asked_between(axes, {"time": [1.0, 4.0], "lon": [-30.0, 360.0]}) == []
    assert asked_between(axes, {"time": [1.0, 4.5]}) == [0]
    assert asked_between(axes, {"lon": [15.0]}) == [1]
    assert asked_between(axes, {"time": [1.0]}, ["time"]) == [0]
