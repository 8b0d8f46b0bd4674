"""The model that users hold: labels, files, blocks and what is refused."""

import json
import os
import zipfile

import cftime
import numpy as np
import pytest
import xarray as xr

from dkrls_cli import DkrlsError, Kernel, Level, fit, load_model
from dkrls_cli.errors import InputError, ModelFileError, OutputError, SettingError
from dkrls_cli.files import npz as modelfile

RNG = np.random.default_rng(7)


def sample(kind="datetime"):
    """A labelled grid: time x lat x station or lon, with attributes."""
    times = {
        "datetime": np.datetime64("2001-01-01") + np.arange(6).astype("timedelta64[D]"),
        "cftime": np.array(
            [cftime.datetime(2000, 2, d + 25, calendar="360_day") for d in range(6)]
        ),
    }[kind]
    return xr.DataArray(
        RNG.standard_normal((6, 5, 4)),
        {
            "time": ("time", times, {"long_name": "time"}),
            "lat": ("lat", np.linspace(60, -60, 5).astype(np.float32), {"units": "degrees_north"}),
            "station": ["a", "b", "c", "d"],
        },
        ["time", "lat", "station"],
        "tas",
        {"units": "K", "valid_range": np.array([100, 400], np.int16), "scale": np.float32(0.5)},
    )


@pytest.mark.parametrize("kind", ["datetime", "cftime"])
def test_a_data_array_comes_back_with_its_labels(kind, tmp_path):
    data = sample(kind)
    fit(data).save(tmp_path / "m.npz")
    answers = load_model(tmp_path / "m.npz").predict()
    xr.testing.assert_identical(answers, data)
    assert answers.attrs["valid_range"].dtype == np.int16
    assert answers.lat.dtype == np.float32


def test_coordinates_are_asked_for_in_the_users_terms():
    model = fit(sample())
    answers = model.predict(time=["2001-01-02T12:00"], lat=[-30, 12.5], station="c")
    assert answers.dims == ("time", "lat")
    assert answers.time.values[0] == np.datetime64("2001-01-02T12:00")
    assert str(answers.station.values) == "c"
    points = model.predict_points(
        time=["2001-01-02T12:00"] * 2, lat=[-30, 12.5], station=["c", "c"]
    )
    np.testing.assert_allclose(points, answers.values[0])


def test_time_is_the_last_level_by_default_and_any_order_answers_the_same():
    data = sample()
    model, other = fit(data), fit(data, levels=["time", "station", "lat"])
    assert model.hierarchy == ("lat", "station", "time")
    assert [level.name for level in other.levels] == ["time", "station", "lat"]
    np.testing.assert_allclose(model.predict(lat=[1.0]), other.predict(lat=[1.0]))


def test_whole_numbers_are_values_like_others():
    whole = np.arange(20).reshape(4, 5) ** 2
    labelled = xr.DataArray(whole, {"x": np.arange(4), "y": np.arange(5)}, ("x", "y"))
    assert np.array_equal(fit(labelled).predict(x=0.5), fit(labelled.astype(float)).predict(x=0.5))
    assert np.array_equal(fit(whole).predict(), whole)


def test_settings_are_taken_for_all_or_by_dimension():
    levels = fit(sample(), kernel="matern12", sigma={"lat": 3.5}, ridge={"lat": 0.5}).levels
    lat, station, time = levels
    assert lat == Level("lat", Kernel("matern12", 3.5), 0.5)
    assert {time.kernel.family, station.kernel.family} == {"matern12"}
    assert lat.kernel.constant == 0  # given whole: the paper's
    assert time.kernel.constant == station.kernel.constant == 1


def test_weights_of_a_level_solve_its_equation():
    x, d = np.linspace(0, 1, 7), np.linspace(0, 2, 6)
    values = RNG.standard_normal((7, 6))
    levels = [Level("d", Kernel("matern32", 0.7), 0.1), Level("x", Kernel(sigma=0.2), 0.2)]
    model = fit(values, {"x": x, "d": d}, levels, mean=0.0)
    gram_d = np.array([[(1 + s) * np.exp(-s) for s in np.sqrt(3) * abs(a - d) / 0.7] for a in d])
    first = np.linalg.solve(gram_d + 0.1 * np.eye(6), values.T).T  # (20): level 0 is d
    np.testing.assert_allclose(model.weights(1), first, rtol=1e-10)
    gram_x = np.exp(-0.5 * np.subtract.outer(x, x) ** 2 / 0.04)
    second = np.linalg.solve(gram_x + 0.2 * np.eye(7), first)  # (21)
    np.testing.assert_allclose(model.weights(2), second, rtol=1e-9)
    with pytest.raises(SettingError, match="depth 3"):
        model.weights(3)


@pytest.mark.parametrize("options", [{}, {"noise": "joint", "ridge": 0.1}, {"compact": True}])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_reloaded_model_predicts_bit_for_bit_the_same(options, dtype, tmp_path):
    x = np.linspace(0, 1, 40)
    smooth = np.sin(np.add.outer(x, 2 * x))
    for values in (smooth, smooth + 1e-3 * RNG.standard_normal((40, 40))):
        model = fit(values, {"x": x, "y": x}, kernel="gaussian", dtype=dtype, **options)
        model.save(tmp_path / "m.npz")
        again = load_model(tmp_path / "m.npz")
        query = {"x": [0.123, x[3], 0.9], "y": np.linspace(0, 1, 17)}
        assert np.array_equal(model.predict(**query), again.predict(**query))
        points = {"x": RNG.random(500), "y": RNG.random(500)}
        assert np.array_equal(model.predict_points(**points), again.predict_points(**points))
        assert np.array_equal(model.std(**query), again.std(**query))
        assert np.array_equal(model.std_points(**points), again.std_points(**points))
        assert again.levels == model.levels
        assert again.cascade.core.dtype == dtype


def test_equal_input_gives_equal_bytes(tmp_path):
    data = sample()
    for name in ("a", "b"):
        fit(data, origin={"inputs": ["x.nc"]}).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_an_existing_file_is_kept_unless_it_may_go(tmp_path):
    path, model = tmp_path / "m.npz", fit(sample())
    path.write_text("precious")
    with pytest.raises(OutputError, match="exists already"):
        model.save(path, overwrite=False)
    assert path.read_text() == "precious"
    model.save(path)
    assert load_model(path).name == "tas"


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path, model = tmp_path / "m.npz", fit(sample())
    model.save(path)
    before = path.read_bytes()

    def full(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OutputError, match=r"m\.npz' cannot be written \(disk full\)"):
        model.save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["m.npz"]


def rewritten(path, change):
    """The model file with its header changed."""
    header, arrays = modelfile.read(path)
    change(header, arrays)
    kept = {k: v for k, v in header.items() if k != "arrays"}
    listed = {name: [a.dtype.str, list(a.shape)] for name, a in arrays.items()}
    text = json.dumps({**kept, "arrays": listed})
    np.savez(path, header=np.frombuffer(text.encode(), np.uint8), **arrays)


def test_another_version_is_refused_by_its_number(tmp_path):
    fit(sample()).save(tmp_path / "m.npz")
    rewritten(tmp_path / "m.npz", lambda header, _: header.update(version=99))
    with pytest.raises(ModelFileError, match=r"version 99.*reads versions 1 to 4"):
        load_model(tmp_path / "m.npz")


DAMAGE = {
    "no levels": lambda h, a: h.pop("levels"),
    "no core": lambda h, a: a.pop("core"),
    "core of another shape": lambda h, a: a.update(core=a["core"][:-1]),
    "core not finite": lambda h, a: a.update(core=a["core"] * np.nan),
    "coordinates of another number": lambda h, a: h["narrowed"]["coordinates_0"].update(count=3),
    "coordinates without end": lambda h, a: h["narrowed"]["coordinates_0"].update(count=10**12),
    "coordinates without a form": lambda h, a: h["narrowed"].pop("coordinates_0"),
    "a form of another type": lambda h, a: h["narrowed"].update(core={"dtype": "|O"}),
    "a number too large": lambda h, a: h["narrowed"]["coordinates_0"].update(start=10**400),
    "a number of steps that is none": lambda h, a: h["narrowed"]["coordinates_0"].update(count="3"),
    "parts of nothing": lambda h, a: h["narrowed"]["coordinates_0"].update(parts=0),
    "a form that is none": lambda h, a: h.update(narrowed=[1]),
    "negative sigma": lambda h, a: h["levels"][0].update(sigma=-1.0),
    "unknown kernel": lambda h, a: h["levels"][0].update(kernel="magic"),
    "a level too few": lambda h, a: h["levels"].pop(),
    "an axis too few": lambda h, a: h["axes"].pop(),
    "a hierarchy of other names": lambda h, a: h["hierarchy"].__setitem__(0, "depth"),
    "a hierarchy that is too short": lambda h, a: h["hierarchy"].pop(),
    "a name twice in the hierarchy": lambda h, a: h["hierarchy"].__setitem__(0, "time"),
    "error bars of fewer levels": lambda h, a: h["bars"]["errors"].pop(),
    "error bars missing": lambda h, a: h.pop("bars"),
    "an unknown style": lambda h, a: h["style"].update(magic=1),
    "filled cells of another grid": lambda h, a: a.update(filled=np.zeros(3, np.uint8)),
    "missing cells of another grid": lambda h, a: a.update(unobserved=np.zeros(3, np.uint8)),
    "distances of another grid": lambda h, a: a.update(distance=np.zeros(3, np.float32)),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_refused_in_one_line(damage, tmp_path):
    path = tmp_path / "m.npz"
    fit(sample()).save(path)
    rewritten(path, DAMAGE[damage])
    with pytest.raises(ModelFileError, match="damaged") as error:
        load_model(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("cut", [0, 1, 100, -1, -1000])
def test_a_cut_file_is_refused(cut, tmp_path):
    path = tmp_path / "m.npz"
    fit(sample()).save(path)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ModelFileError, match="not a model file"):
        load_model(path)


def test_a_file_that_promises_more_than_it_holds_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "m.npz"
    fit(sample()).save(path)
    header, arrays = modelfile.read(path)
    header["arrays"]["core"] = ["<f8", [10**6, 10**6]]
    text = json.dumps(header).encode()
    np.savez(path, header=np.frombuffer(text, np.uint8), **arrays)
    with pytest.raises(ModelFileError, match="not of the size"):
        load_model(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.npy", b"nonsense")
    with pytest.raises(ModelFileError, match="not a model file"):
        load_model(path)


def test_other_files_are_refused(tmp_path):
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    np.savez(tmp_path / "pickle.npz", header=np.array([{"a": 1}], object))
    (tmp_path / "text.npz").write_text("hello")
    for name in ("other.npz", "pickle.npz", "text.npz"):
        with pytest.raises(ModelFileError, match="not a model file"):
            load_model(tmp_path / name)
    with pytest.raises(ModelFileError, match="no model file"):
        load_model(tmp_path / "absent.npz")


def test_plain_arrays_need_no_coordinates():
    values = RNG.standard_normal((4, 5))
    model = fit(values)
    assert model.dims == ("dim_0", "dim_1")
    np.testing.assert_array_equal(model.predict(), values)
    assert "dim_0" not in model.predict().coords
    assert model.predict(dim_0=[0.5]).shape == (1, 5)


def test_a_dimension_of_one_coordinate_changes_no_answer_and_comes_back():
    data = sample()
    thin = fit(data)
    model = fit(data.expand_dims(height=[2.0]))
    assert model.dims == ("height", "time", "lat", "station")
    assert model.hierarchy == ("height", *thin.hierarchy)
    at = {"lat": [11.0, 37.0]}
    xr.testing.assert_allclose(model.predict(**at).isel(height=0, drop=True), thin.predict(**at))
    xr.testing.assert_allclose(model.std(**at).isel(height=0, drop=True), thin.std(**at))
    with pytest.raises(SettingError, match=r"outside the training range 2\.0 to 2\.0"):
        model.predict(height=3.0)


X = np.arange(4.0)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fit(np.zeros((4, 4)), {"x": X}), InputError, r"shape \(4, 4\).*x 4"),
        (lambda: fit(sample(), coordinates=[X]), SettingError, "its own"),
        (lambda: fit(sample().to_dataset()), InputError, "Dataset"),
        (lambda: fit(sample(), levels=["time", "lat"]), SettingError, "Name each of them once"),
        (lambda: fit(sample(), sigma={"lon": 3}), SettingError, "no dimension 'lon'"),
        (lambda: fit(sample(), sigma="wide"), SettingError, "'wide'"),
        (lambda: fit(sample(), noise="some"), SettingError, "'some'"),
        (lambda: fit(sample(), noise="joint", ridge={"lat": 1.0}), SettingError, "one number"),
        (lambda: fit(sample(), dtype="float16"), SettingError, "float16"),
        (lambda: fit(X, [X], [Level("dim_0")], sigma=3.0), SettingError, "given whole"),
        (lambda: fit(X, [X], [Level("dim_0")], sigma={"dim_0": 3.0}), SettingError, "given whole"),
        (lambda: fit(sample().where(False)), InputError, "All 120 values are missing"),
        (lambda: fit(xr.DataArray(3.0)), InputError, "no dimension"),
        (lambda: fit(xr.DataArray([["a", "b"], ["c", "d"]])), InputError, "real numbers"),
        (lambda: fit(xr.DataArray(np.array([[1, "x"]] * 2, object))), InputError, "real numbers"),
        (lambda: fit(sample()).predict(lon=3), SettingError, "no dimension 'lon'"),
        (lambda: fit(sample()).predict_points(lat=[3]), SettingError, "'time' as well"),
        (lambda: fit(sample()).predict(station="z"), SettingError, "no 'z'"),
    ],
)
def test_what_is_wrong_is_said(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert isinstance(caught.value, DkrlsError)
    assert "\n" not in str(caught.value)


def test_coordinates_beyond_the_training_range_are_refused_unless_on_a_circle():
    x, lon = np.array([4.0, 1, 2, 3]), np.arange(0.0, 360, 45)
    circle = {"x": None, "lon": 360.0}
    settings = {"kernel": "matern52", "sigma": {"x": 1, "lon": 60}, "ridge": 0.1, "period": circle}
    model = fit(RNG.standard_normal((4, 8)), {"x": x, "lon": lon}, **settings)
    assert np.isfinite(model.predict(x=[1.0, 4.0], lon=[-700.0, 700.0])).all()
    with pytest.raises(SettingError) as refused:
        model.predict(x=[2.0, 4.5, 0.5], lon=[1.0])
    assert str(refused.value) == (
        "2 of 3 coordinates of 'x' are outside the training range 1.0 to 4.0, the first 4.5."
    )
    assert refused.value.setting == "outside"
