"""Models of several variables share one file, and what is equal in them is stored once."""

import pickle
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from old_models import write_old

from dkrls_cli import Level, fit, load_model, load_models, save_models
from dkrls_cli.cascade.errorbars.levels import LevelBars
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.errors import InputError, ModelFileError, OutputError, SettingError
from dkrls_cli.files import npz as modelfile
from dkrls_cli.gaps.bars import GapBars
from dkrls_cli.grid.style import Companion, Style
from dkrls_cli.model.records.files import join_records
from dkrls_cli.model.saving import model_record


def two_models():
    x, y = np.linspace(0, 3, 15), np.linspace(0, 2, 12)
    values = np.outer(np.sin(x), np.cos(y))
    how = {"kernel": "gaussian", "sigma": 1.0, "ridge": 1e-6}
    names = {"t": values, "u": 2 * values + 1}
    return [fit(xr.DataArray(v, {"x": x, "y": y}, name=n), **how) for n, v in names.items()]


def test_several_models_survive_one_file_and_share_what_they_have_in_common(tmp_path):
    models = two_models()
    save_models(models, tmp_path / "both.npz")
    again = load_models(tmp_path / "both.npz")
    assert list(again) == ["t", "u"]
    for model in models:
        read = again[model.name]
        np.testing.assert_array_equal(read.predict(x=[0.7]), model.predict(x=[0.7]))
        np.testing.assert_array_equal(read.std(x=[0.7]), model.std(x=[0.7]))
    with np.load(tmp_path / "both.npz") as file:
        assert [name for name in file.files if name.startswith("1_")] == ["1_core"]


def test_a_table_with_an_edge_is_fitted_saved_updated_and_read_again(tmp_path):
    x, t = np.linspace(0.0, 3.0, 31), np.arange(9.0)
    values = np.where(x[:, None] < 1.0, 0.0, np.sin(4 * np.outer(x - 1.0, 0.5 + t / 8)))
    table = xr.DataArray(values, {"x": x, "t": t}, name="v")
    model = fit(table[:, :8], levels=["x", "t"])
    assert model.levels[0].kernel.pieces
    query = {"x": [0.33, 0.97, 2.02], "t": [3.5]}
    for one in (model, model.update(table[:, 8:])):
        one.save(tmp_path / "m.npz", overwrite=True)
        read = load_model(tmp_path / "m.npz")
        assert read.levels == one.levels
        np.testing.assert_array_equal(read.predict(**query), one.predict(**query))
        np.testing.assert_array_equal(read.std(**query), one.std(**query))


def test_one_model_is_chosen_from_several_by_name(tmp_path):
    save_models(two_models(), tmp_path / "both.npz")
    assert load_model(tmp_path / "both.npz", "u").name == "u"
    with pytest.raises(SettingError, match=r"models of 2 variables: t, u\. Choose one") as refused:
        load_model(tmp_path / "both.npz")
    assert refused.value.setting == "var"
    with pytest.raises(SettingError, match=r"no variable 'v'\. It has t, u"):
        load_model(tmp_path / "both.npz", "v")


def test_one_model_is_saved_as_ever_and_names_differ(tmp_path):
    one, other = two_models()
    save_models([one], tmp_path / "one.npz")
    one.save(tmp_path / "same.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "same.npz").read_bytes()
    assert list(load_models(tmp_path / "one.npz")) == ["t"]
    with pytest.raises(InputError, match="same name: t, t"):
        save_models([one, one], tmp_path / "twice.npz")
    save_models([one, other], tmp_path / "one.npz")
    with pytest.raises(OutputError, match="exists already"):
        save_models([one, other], tmp_path / "one.npz", overwrite=False)


def test_a_file_of_several_that_lacks_a_member_is_damaged(tmp_path):
    header, arrays = join_records([model_record(model) for model in two_models()])
    for broken in (
        {"variables": []},
        {"variables": [header["variables"][0]] * 2},
        {"variables": [{**header["variables"][0], "members": {"core": "7_core"}}]},
        {"variables": 3},
    ):
        modelfile.write(tmp_path / "m.npz", {**header, **broken}, arrays)
        with pytest.raises(ModelFileError, match="is damaged"):
            load_models(tmp_path / "m.npz")


# ---- what was there before: files of versions 1 and 2

X, D = np.linspace(0, 3, 15), np.array([0.0, 0.4, 1.0, 1.3, 2.5, 2.6, 3.0, 4.0, 4.1, 5.0, 6.0, 7.5])
RNG = np.random.default_rng(5)
NOISE = RNG.standard_normal((15, 12))
GAPPY = np.where(RNG.random((15, 12)) < 0.3, np.nan, NOISE)
LEVELS = [Level("x", Kernel("matern32", 1.0), 0.1), Level("d", Kernel("matern52", 2.0), 0.2)]


def joint(values):
    how = {"kernel": "matern32", "sigma": 1.0, "ridge": 0.1, "noise": "joint"}
    return fit(values, {"x": X, "d": D}, **how)


def filled():
    how = {"kernel": "matern32", "sigma": 1.0, "ridge": 0.1}
    return fit(NOISE[:, :9], {"x": X, "d": D[:9]}, **how).update(GAPPY[:, 9:], D[9:])


def compact():
    return fit(NOISE, {"x": X, "d": D}, kernel="gaussian", sigma=3.0, ridge=1e-3, compact=True)


OLD = {
    "level": lambda: fit(NOISE, {"x": X, "d": D}, LEVELS),
    "single": lambda: fit(NOISE, {"x": X, "d": D}, LEVELS, dtype="float32"),
    "joint": lambda: joint(NOISE),
    "gaps": lambda: joint(GAPPY),
    "filled": filled,
    "compact": compact,
    "framed": lambda: fit(np.outer(np.sin(X), np.cos(D)), {"x": X, "d": D}, LEVELS),
    "bounded": lambda: fit(NOISE, {"x": X, "d": D}, LEVELS, bounds=(-3, None)),
    "longitudes": lambda: fit(NOISE, {"x": X, "lon": np.roll(np.arange(12) * 30.0, 3)}, sigma=9.0),
}


@pytest.mark.parametrize("kind", OLD)
def test_models_of_older_versions_answer_the_same(kind, tmp_path):
    model = OLD[kind]()
    if isinstance(model._calibrated, LevelBars):  # older files have no scales by place
        model = replace(model, known_bars=replace(model._calibrated, local=(), growth=()))
    if isinstance(model.known_bars, GapBars):
        model = replace(model, known_bars=replace(model.known_bars, is_local=False))
    write_old(tmp_path / "old.npz", [model])
    again = load_model(tmp_path / "old.npz")
    at = {"x": [0.1, X[3], 2.9], model.dims[1]: [0.2, 1.0, 6.1]}
    for smooth in (False, True):
        np.testing.assert_array_equal(
            again.predict(smooth=smooth, **at), model.predict(smooth=smooth, **at)
        )
        np.testing.assert_array_equal(
            again.std(smooth=smooth, **at), model.std(smooth=smooth, **at)
        )
    np.testing.assert_array_equal(again.predict(), model.predict())
    np.testing.assert_array_equal(again.std(), model.std())
    assert (again.storage, again.ranks, again.errors) == (model.storage, model.ranks, model.errors)
    assert [axis.texts for axis in again.coverage.axes] == [axis.texts for axis in model.axes]
    again.save(tmp_path / "new.npz")
    model.save(tmp_path / "same.npz")
    assert (tmp_path / "new.npz").stat().st_size <= (tmp_path / "same.npz").stat().st_size + 99
    np.testing.assert_array_equal(load_model(tmp_path / "new.npz").std(**at), model.std(**at))


def test_several_models_of_an_older_version_answer_the_same(tmp_path):
    models = two_models()
    write_old(tmp_path / "old.npz", models)
    again = load_models(tmp_path / "old.npz")
    assert list(again) == ["t", "u"]
    for model in models:
        np.testing.assert_array_equal(again[model.name].predict(x=[0.7]), model.predict(x=[0.7]))


# ---- sizes


def days(count, step=1):
    return np.datetime64("2020-01-01", "ns") + step * np.arange(count) * np.timedelta64(1, "h")


def array(shape, dtype, missing=0.0, land=False, **coordinates):
    """Noise, the least compressible data, on some coordinates."""
    values = np.random.default_rng(0).standard_normal(shape)
    values[np.random.default_rng(1).random(shape) < missing] = np.nan
    if land:
        values[..., :9, 3:8] = np.nan
    return xr.DataArray(values.astype(dtype), coordinates, list(coordinates), name="v")


GRID = {"time": days(30), "lat": np.linspace(-20, 20, 25), "lon": np.arange(3.0, 363.0, 10)}
SERIES = np.cumsum(np.random.default_rng(2).integers(1, 60000, 1500))
SECONDS = np.datetime64("2001-01-01", "ns") + SERIES * np.timedelta64(1, "s")
SIZED = {
    "level": (array((30, 25, 36), "f4", **GRID), {}),
    "joint": (array((30, 25, 36), "f4", **GRID), {"noise": "joint"}),
    "gaps": (array((30, 25, 36), "f4", 0.3, **GRID), {}),
    "half": (array((30, 25, 36), "f4", 0.5, **GRID), {}),
    "land": (array((30, 25, 36), "f4", 0.1, land=True, **GRID), {}),
    "double": (array((30, 25, 36), "f8", **GRID), {}),
    "double with gaps": (array((30, 25, 36), "f8", 0.3, **GRID), {}),
    "hours": (array(1500, "f4", time=days(1500)), {}),
    "seconds": (array(1500, "f8", time=SECONDS), {}),
    "long and thin": (array((1500, 4), "f4", time=days(1500), x=np.arange(4.0)), {}),
    "labels": (array((90, 30), "f4", site=[f"s{i}" for i in range(90)], time=days(30)), {}),
}


@pytest.mark.parametrize("kind", SIZED)
def test_a_file_is_smaller_than_its_data_and_comes_back_bit_for_bit(kind, tmp_path):
    data, how = SIZED[kind]
    settings = {"sigma": dict.fromkeys(data.dims, 5.0), "kernel": "matern32", "ridge": 0.1}
    model = fit(data, **settings, **how)
    model.save(tmp_path / "m.npz")
    size = (tmp_path / "m.npz").stat().st_size
    assert size <= 0.93 * data.nbytes + (4 * SERIES.size if kind == "seconds" else 0) + 4096
    again = load_model(tmp_path / "m.npz")
    np.testing.assert_array_equal(again.cascade.core, model.cascade.core)
    assert (again.storage, model.storage) == ("float64", "float64")
    assert [axis.texts for axis in again.axes] == [axis.texts for axis in model.axes]
    first = {data.dims[0]: data[data.dims[0]].values[:2]}
    np.testing.assert_array_equal(again.predict(**first), model.predict(**first))
    np.testing.assert_array_equal(again.std(**first), model.std(**first))
    smooth = {"smooth": True, **{dim: data[dim].values[:3] for dim in data.dims}}
    np.testing.assert_array_equal(again.predict(**smooth), model.predict(**smooth))


def test_what_stands_beside_the_data_takes_little(tmp_path):
    hours, ends = np.arange(5000.0), np.arange(1.0, 5001.0)
    beside = {
        "time_bnds": Companion(("time", "bnds"), np.stack([hours, ends], 1)),
        "flag": Companion(("time",), np.arange(5000) % 3),
        "site": Companion(("time",), np.array([f"station {i % 7}" for i in range(5000)])),
    }
    style = Style(companions=beside, coordinates={"time": hours})
    model = fit(
        NOISE.ravel()[:20], {"time": np.arange(20.0)}, kernel="matern32", sigma=3, ridge=0.1
    )
    replace(model, style=style).save(tmp_path / "m.npz")
    assert (tmp_path / "m.npz").stat().st_size < 5000 * (1 + 9) + 2**13
    again = load_model(tmp_path / "m.npz").style
    for name, one in beside.items():
        assert again.companions[name].values.dtype == one.values.dtype
        np.testing.assert_array_equal(again.companions[name].values, one.values)


def test_attributes_that_all_variables_have_are_stored_once(tmp_path):
    one, other = (
        replace(model, style=Style(global_attrs={"history": "x" * 50000})) for model in two_models()
    )
    save_models([one, other], tmp_path / "both.npz")
    assert (tmp_path / "both.npz").stat().st_size < 50000 + 2**14
    for model in load_models(tmp_path / "both.npz").values():
        assert len(model.style.global_attrs["history"]) == 50000
    different = replace(other, style=Style(global_attrs={"history": "y"}))
    save_models([one, different], tmp_path / "both.npz")
    again = load_models(tmp_path / "both.npz")
    assert [again[name].style.global_attrs["history"][:1] for name in ("t", "u")] == ["x", "y"]


def test_updated_models_stay_small(tmp_path):
    data, _ = SIZED["gaps"]
    how = {"sigma": dict.fromkeys(data.dims, 5.0), "kernel": "matern32", "ridge": 0.1}
    whole = data.fillna(0.0)
    for first in (data, whole):  # a joint ridge, and a ridge per level
        model = fit(first.isel(time=slice(0, 20)), **how).update(data.isel(time=slice(20, None)))
        model.save(tmp_path / "m.npz")
        assert (tmp_path / "m.npz").stat().st_size <= 0.93 * data.nbytes + 4096
        again = load_model(tmp_path / "m.npz")
        assert np.array_equal(again.unobserved, model.unobserved)
        np.testing.assert_array_equal(again.predict(), model.predict())
        np.testing.assert_array_equal(again.std(), model.std())


def test_coordinates_of_the_source_come_back_also_where_it_has_no_data(tmp_path):
    hours, lost = np.arange(40.0), NOISE.ravel()[:40].copy()
    lost[7:9] = np.nan
    values = xr.DataArray(lost, {"time": hours}, ["time"])
    model = fit(values, kernel="matern32", sigma=3.0, ridge=0.1)
    assert model.shape == (38,)
    replace(model, style=Style(coordinates={"time": hours})).save(tmp_path / "m.npz")
    again = load_model(tmp_path / "m.npz")
    np.testing.assert_array_equal(again.style.coordinates["time"], hours)
    np.testing.assert_array_equal(again.coverage.axes[0].numbers, hours)
    np.testing.assert_array_equal(again.axes[0].numbers, np.delete(hours, [7, 8]))


def table():
    p, t = np.geomspace(1.0, 1e3, 14), np.linspace(300.0, 400.0, 12)
    values = np.log(p)[:, None] * np.exp(-t / 300) + np.sqrt(t)
    return xr.DataArray(values, dims=("p", "T"), coords={"p": p, "T": t}, name="h")


def test_splines_and_warps_are_read_back_exactly(tmp_path):
    model = fit(table(), kernel={"p": "log-cubic"})
    assert model.levels[0].kernel.name == "log-cubic"
    model.save(tmp_path / "m.npz")
    loaded = load_model(tmp_path / "m.npz")
    assert loaded.levels == model.levels
    query = {"p": [1.7, 512.0], "T": [301.0, 399.9]}
    assert np.array_equal(loaded.predict(**query), model.predict(**query))
    assert np.array_equal(loaded.std(**query), model.std(**query))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ridge": 0.1}, "has no ridge"),
        ({"errors": "cubic"}, "errors"),
        ({"kernel": "exp-cubic"}, "kernel"),
        ({"kernel": "gaussian"}, "errors"),
        ({"period": 360.0}, "circle"),
    ],
)
def test_a_file_whose_spline_cannot_be_is_refused(tmp_path, changes, message):
    model = fit(table(), kernel={"p": "log-cubic", "T": "matern52"})
    header, arrays = model_record(model)
    header["levels"][0] |= changes
    modelfile.write(tmp_path / "m.npz", header, arrays)
    with pytest.raises(ModelFileError, match=message):
        load_model(tmp_path / "m.npz")


@pytest.mark.parametrize("copied", [lambda model: pickle.loads(pickle.dumps(model)), deepcopy])
@pytest.mark.parametrize("gaps", [False, True])
def test_a_model_goes_to_other_processes_as_to_a_file(copied, gaps, tmp_path):
    model = two_models()[0]
    if gaps:
        data = model.predict()
        data[3, 4] = np.nan
        model = fit(data, kernel="gaussian", sigma=1.0, ridge=1e-6)
    model.save(tmp_path / "m.npz")
    again, loaded = copied(model), load_model(tmp_path / "m.npz")
    for ask in ("predict", "std"):
        xr.testing.assert_identical(getattr(again, ask)(x=0.33), getattr(loaded, ask)(x=0.33))
    assert again.origin == loaded.origin
