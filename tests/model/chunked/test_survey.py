"""Settings chosen on a few chunks, beside those of a fit of the whole grid."""

import math

import numpy as np
import pytest
import xarray as xr
from stored_grids import EAST, globe, stored, waves

from dkrls_cli.cascade.errorbars.levels import LevelBars
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.errors import InputError, ScatteredGapsError, SettingError
from dkrls_cli.memory import held_bytes
from dkrls_cli.model.chunked import panels
from dkrls_cli.model.chunked import survey as surveying
from dkrls_cli.model.chunked.survey import plan_survey, survey
from dkrls_cli.model.fit import fit
from dkrls_cli.model.settings import DEFAULTS, Settings
from dkrls_cli.model.training.complete import Settled

GIVEN = Settings(
    levels=[Level(dim, Kernel("matern52", 5.0), 0.01) for dim in ("lat", "lon", "time")], mean=3.0
)
CLOSED = Settings(kernel="matern52", sigma=20.0, ridge=1e-3)


@pytest.fixture(autouse=True)
def _small_grids_are_large(monkeypatch):
    monkeypatch.setattr(panels, "_CHEAP", 0)
    monkeypatch.setattr(surveying, "_MOST_CELLS", 2**16)


def rms(errors) -> float:
    return float(np.sqrt(np.mean(np.asarray(errors) ** 2)))


def answers(model, data, **at):
    """Return the errors of a model at coordinates that it was not shown."""
    return rms(model.predict(**at) - data.sel({dim: list(where) for dim, where in at.items()}))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chunks", "wanted", "asked"),
    [
        ((10, 8, 8), None, ["time", "lat", "lon"]),
        ((10, 8, 8), [1, 2], ["lat", "lon"]),
        ((600, 4, 4), [1, 2], ["lat", "lon"]),
        ((4, 40, 48), [0], ["time"]),
    ],
)
def test_answers_are_as_good_as_those_of_settings_chosen_on_all_data(chunks, wanted, asked):
    data = waves(600, 80, 96, noise=0.1)
    held_out = {dim: slice(None, None, 2) if dim in asked else slice(None) for dim in data.dims}
    shown = data.isel(held_out)
    whole = fit(shown)
    source = stored(shown, tuple(min(c, n) for c, n in zip(chunks, shown.shape, strict=True)))
    found = survey(source, DEFAULTS, wanted)
    assert found.plan.share < 0.45
    at = {dim: data[dim].values[1:-1:2][:10] for dim in asked}
    levels = [found.model.level_of(dim) for dim in whole.hierarchy]
    ours = fit(shown, levels=levels, mean=found.mean)
    assert answers(ours, data, **at) < 1.05 * answers(whole, data, **at)
    own = [whole.dims.index(dim) for dim in asked]
    errors = np.array(found.model.errors)[own] / np.array(whole.errors)[own]
    np.testing.assert_allclose(errors, 1.0, atol=0.15)
    queries = whole.queries(whole.axes_at(at))
    spread = np.sqrt(found.model.variance(queries).mean() / whole.variance(queries).mean())
    apart = len(found.plan.panels) == len(asked) > 1  # then nothing tells how much of it is noise
    assert 0.8 < spread < (1.6 if apart else 1.25)


def test_a_panel_of_the_whole_grid_chooses_what_a_fit_chooses():
    data = globe()
    whole, found = fit(data), survey(stored(data, (4, 10, 18)), DEFAULTS)
    assert found.note == ""
    assert found.model.levels == whole.levels
    assert found.model.across_poles == whole.across_poles == "scalar"
    assert found.mean == pytest.approx(whole.cascade.mean, rel=1e-12)
    at = whole.queries(whole.axes_at({"lat": [-88.0, 4.5], "lon": [1.0]}))
    np.testing.assert_allclose(found.model.variance(at), whole.variance(at))


def test_slices_that_are_passed_through_say_nothing_of_the_poles_nor_of_places():
    data = globe(60)
    found = survey(stored(data, (1, 19, 36)), DEFAULTS, [1, 2])
    assert found.model.across_poles == "scalar"
    assert found.model.poles.mean == found.mean
    errors, whole = found.model.errors, fit(data).errors
    assert math.isnan(errors[0])
    np.testing.assert_allclose(errors[1:], whole[1:], rtol=0.2)
    assert found.note == "settings chosen for lat, lon on 3 of 60 time"
    assert found.model.origin["settings_chosen_on"] == found.note


def test_the_plan_is_what_is_read():
    source = stored(waves(200), (1, 20, 24))
    plan = plan_survey(source, DEFAULTS, [1, 2])
    assert source.read.calls == 0
    found = survey(source, DEFAULTS, [1, 2])
    assert source.read.cells * 4 == plan.bytes_read == found.plan.bytes_read
    assert plan.chunks_read == plan.panels[0].shape[0]
    assert plan.share == plan.bytes_read / (200 * 20 * 24 * 4) <= 0.05
    assert plan.memory >= held_bytes()


def test_nothing_is_read_where_nothing_is_chosen():
    source = stored(waves(), (10, 10, 12))
    found = survey(source, GIVEN, bars=False)
    assert source.read.calls == found.plan.bytes_read == 0
    assert (found.mean, found.note) == (3.0, "")
    assert [level.kernel.sigma for level in found.model.levels] == [5.0, 5.0, 5.0]
    assert np.isnan(found.model.errors).all()
    with_bars = survey(source, GIVEN)
    assert source.read.calls > 0
    assert isinstance(with_bars.model.bars, LevelBars)
    np.testing.assert_allclose(
        with_bars.model.errors, fit(waves(), levels=GIVEN.levels, mean=3.0).errors, rtol=0.3
    )


def test_nothing_is_trained_where_no_error_bars_are_wanted(monkeypatch):
    data = globe()
    levels = survey(stored(data, (2, 13, 12)), DEFAULTS, [1, 2]).model.levels
    monkeypatch.setattr(Settled, "fit", lambda *_: pytest.fail("trained"))
    found = survey(stored(data, (2, 13, 12)), DEFAULTS, [1, 2], bars=False).model
    assert found.levels == levels
    assert found.poles is not None


def test_the_mean_is_that_of_a_few_chunks_if_it_is_not_given():
    source = stored(waves(noise=1.0), (10, 10, 12))
    settings = Settings(levels=GIVEN.levels)
    found = survey(source, settings, bars=False)
    assert 0 < source.read.cells < 0.2 * 60 * 20 * 24
    assert found.mean == pytest.approx(float(waves(noise=1.0).mean()), abs=1.0)


def test_ways_across_the_poles_that_are_given_are_taken_without_reading():
    levels = [
        Level("lat", Kernel("matern52", 30.0), 0.01),
        Level("lon", Kernel("matern52", 30.0, 360.0), 0.01),
        Level("time", Kernel("matern52", 3.0), 0.01),
    ]
    source = stored(globe(), (4, 10, 18))
    found = survey(source, Settings(levels=levels, mean=1.0, poles="vector"), bars=False)
    assert (source.read.calls, found.model.across_poles) == (0, "vector")
    assert survey(source, Settings(levels=levels, mean=1.0), bars=False).model.poles is not None
    assert source.read.calls > 0  # which way it is, the data tells


def test_labels_single_coordinates_and_repeated_longitudes_are_as_in_a_fit():
    rng = np.random.default_rng(0)
    lon = np.arange(0.0, 390.0, 30.0)
    data = xr.DataArray(
        np.sin(np.deg2rad(lon)) + 0.1 * rng.normal(size=(5, 1, 13)),
        {"site": list("abcde"), "level": [500.0], "lon": ("lon", lon, EAST)},
        ["site", "level", "lon"],
    )
    data[..., -1] = data[..., 0]
    whole, found = fit(data), survey(stored(data), DEFAULTS)
    assert found.model.levels == whole.levels
    assert found.model.origin["dropped_coordinates"] == whole.origin["dropped_coordinates"]
    assert found.model.shape == (5, 1, 12)
    assert found.model.coverage.axes[2].size == 13


def test_bounds_are_as_the_panels_tell():
    data = waves().assign_attrs(valid_range=[-100.0, 100.0])
    found = survey(stored(data, (10, 10, 12)), DEFAULTS, [1, 2])
    assert (found.model.bounds.low, found.model.bounds.high) == (-100.0, 100.0)
    narrow = survey(stored(data.assign_attrs(valid_range=[0.0, 9.0])), DEFAULTS, [1, 2])
    assert narrow.model.bounds is None
    assert "are not kept" in narrow.model.origin["bounds"]
    with pytest.raises(SettingError, match="The bounds do not hold"):
        survey(stored(data), Settings(bounds=(0, 9)))
    asked = Settings(levels=GIVEN.levels, mean=3.0, bounds=(0, 9))
    assert survey(stored(data), asked, bars=False).model.bounds.high == 9.0


def test_coordinates_that_mark_missing_ones_are_told():
    data = waves(20, 8, 9)
    data = data.assign_coords(lat=("lat", [-9999.0, *data.lat.values[1:]], data.lat.attrs))
    found = survey(stored(data), GIVEN)
    (note,) = found.model.origin["notes"]
    assert "'lat'" in note
    assert "-9999" in note


def test_missing_cells_are_refused_before_anything_is_chosen(monkeypatch):
    data = waves(40, 12, 14)
    data.values[np.random.default_rng(1).random(data.shape) < 0.2] = np.nan
    monkeypatch.setattr(surveying, "settle", None)
    with pytest.raises(ScatteredGapsError, match=r"missing cells, \d+ in the part on which"):
        survey(stored(data, (1, 12, 14)), DEFAULTS, [1, 2])


@pytest.mark.parametrize(
    ("settings", "bars", "remedy"),
    [
        (DEFAULTS, False, "Allow more memory, or give kernels, sigmas and ridges, and poles."),
        (CLOSED, False, "Allow more memory, or give poles."),
        (CLOSED, True, "Allow more memory."),
    ],
)
def test_a_refusal_names_only_what_is_left_to_give(settings, bars, remedy):
    source = stored(globe(), (1, 9, 12))
    with pytest.raises(InputError) as told:
        plan_survey(source, settings, None, held_bytes(), bars=bars)
    assert str(told.value).endswith(remedy)


def test_a_limit_is_kept_or_refused(monkeypatch):
    source = stored(waves(200, 30, 40), (10, 10, 10))
    tight = held_bytes() + 40e6
    plan = plan_survey(source, DEFAULTS, None, tight)
    assert plan.memory <= tight
    for limit in (held_bytes(), 2e3):
        with pytest.raises(InputError, match=r"takes about \d+ MB, and \d+ MB are allowed") as told:
            plan_survey(source, DEFAULTS, None, limit)
        enough = 1e6 * float(str(told.value).split("about ")[1].split()[0])
        assert plan_survey(source, DEFAULTS, None, enough + 1e6).memory <= enough + 1e6
    monkeypatch.setattr(surveying, "plan_panels", lambda *given, **how: None)
    with pytest.raises(InputError, match="takes more than the 100000 MB that are allowed"):
        plan_survey(source, DEFAULTS, None, 1e11)
    with pytest.raises(SettingError, match="One joint ridge"):
        plan_survey(source, Settings(noise="joint"))
