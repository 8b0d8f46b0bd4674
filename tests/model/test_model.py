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
    assert np.isfinite(model.predict(x=[1.0, 4.0], lon=[-700.0, 1000.0])).all()
    with pytest.raises(SettingError) as refused:
        model.predict(x=[2.0, 4.5, 0.5], lon=[1.0])
    assert str(refused.value) == (
        "2 of 3 coordinates of 'x' are outside the training range 1.0 to 4.0, the first 4.5."
    )
    assert refused.value.setting == "outside"


# --- answers in blocks, on axes and at points ----------------------------------------------------

T, S = np.arange(12.0), np.linspace(0, 1, 5)
FIELD = np.sin(np.add.outer(np.add.outer(T / 3, S), S)) + 0.1 * RNG.standard_normal((12, 5, 5))
GAPPY = np.where(RNG.random(FIELD.shape) < 0.2, np.nan, FIELD)
SETTINGS = {"kernel": "matern32", "sigma": {"t": 3.0, "x": 0.5, "y": 0.5}, "mean": 0.2}


def model_of(kind):
    """A model of one kind of ridge and error bars, growing along t."""
    axes, ridge = {"t": T, "x": S, "y": S}, {"ridge": 1e-2}
    how = {"levels": ["x", "y", "t"], **SETTINGS, **ridge}
    if kind == "gaps":
        return fit(GAPPY, axes, **how)
    if kind == "filled":
        start = fit(FIELD[:8], {**axes, "t": T[:8]}, **how)
        return start.update(GAPPY[8:], T[8:])
    return fit(FIELD, axes, noise=kind, **how)


each_kind = pytest.mark.parametrize("kind", ["level", "joint", "gaps", "filled"])
AT = {"t": [0.0, 0.5, 9.0, 11.0, 13.0], "x": [0.1, 0.25, 0.75, 2.0], "y": [0.0, 0.33, 1.0]}


@each_kind
@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("cells", [1, 3, 7, 12, 25, 60])
def test_blocks_are_parts_of_the_whole_answer(kind, smooth, cells):
    """Blocks smaller than the inner axes, so that there are many along the outer ones."""
    model = model_of(kind)
    axes = model.axes_at(AT)
    values, errors = np.full((2, 5, 4, 3), np.nan)
    starts = []
    for part, answer, std in model.blocks_on(axes, cells, std=True, smooth=smooth):
        assert np.isnan(values[part]).all()
        values[part], errors[part] = answer, std
        starts.append(np.ravel_multi_index([side.start for side in part], values.shape))
    assert starts == sorted(starts)
    assert len(starts) == {1: 60, 3: 20, 7: 10, 12: 5, 25: 3, 60: 1}[cells]
    np.testing.assert_allclose(values, model.values_on(axes, smooth=smooth), rtol=1e-9)
    np.testing.assert_allclose(errors, model.std_on(axes, smooth=smooth), rtol=1e-9, atol=1e-12)


def test_blocks_have_no_errors_unless_asked_for():
    model = model_of("level")
    assert all(std is None for _, _, std in model.blocks_on(model.axes, 40))


@each_kind
@pytest.mark.parametrize("smooth", [False, True])
def test_every_way_to_ask_answers_the_same(kind, smooth):
    model = model_of(kind)
    axes = model.axes_at(AT)
    values, errors = (f(axes, smooth=smooth) for f in (model.values_on, model.std_on))
    np.testing.assert_array_equal(model.predict(smooth=smooth, extrapolate=True, **AT), values)
    np.testing.assert_array_equal(model.std(smooth=smooth, extrapolate=True, **AT), errors)
    points = [axis.ravel() for axis in np.meshgrid(*AT.values(), indexing="ij")]
    named = dict(zip("txy", points, strict=True))
    np.testing.assert_allclose(model.values_at(points, smooth=smooth), values.ravel(), rtol=1e-9)
    np.testing.assert_allclose(
        model.predict_points(smooth=smooth, extrapolate=True, **named), values.ravel()
    )
    np.testing.assert_allclose(
        model.std_at(points, smooth=smooth), errors.ravel(), rtol=1e-7, atol=1e-12
    )
    at_points = model.std_points(smooth=smooth, extrapolate=True, **named)
    np.testing.assert_allclose(at_points, errors.ravel(), rtol=1e-7, atol=1e-12)


def test_answers_pass_through_unless_asked_not_to():
    model = model_of("level")
    points = [axis.ravel() for axis in np.meshgrid(*model.cascade.coordinates, indexing="ij")]
    named = dict(zip("txy", points, strict=True))
    answers = [
        model.predict().values,
        model.values_on(model.axes),
        model.predict_points(**named),
        model.values_at(points),
        np.concatenate([values.ravel() for _, values, _ in model.blocks_on(model.axes, 40)]),
    ]
    for values in answers:
        np.testing.assert_allclose(values.ravel(), FIELD.ravel(), rtol=1e-12)
    errors = [
        model.std().values,
        model.std_on(model.axes),
        model.std_points(**named),
        model.std_at(points),
        model.variance(model.cascade.coordinates),
        *(std for _, _, std in model.blocks_on(model.axes, 40, std=True)),
    ]
    assert not any(std.any() for std in errors)


@each_kind
def test_only_cells_that_were_missing_are_uncertain_at_the_nodes(kind):
    model = model_of(kind)
    missing = np.isnan(GAPPY) if kind in ("gaps", "filled") else np.zeros(FIELD.shape, bool)
    missing[:8] &= kind == "gaps"
    assert np.array_equal(model.std().values > 0, missing)
    assert (model.unobserved is None) == (not missing.any())
    assert model.unobserved is None or np.array_equal(model.unobserved, missing)


@each_kind
def test_every_kind_of_model_survives_a_file(kind, tmp_path):
    model = model_of(kind)
    model.save(tmp_path / "m.npz")
    again = load_model(tmp_path / "m.npz")
    far = {**AT, "extrapolate": True}
    np.testing.assert_array_equal(again.predict(**far), model.predict(**far))
    np.testing.assert_array_equal(again.std(**far), model.std(**far))
    np.testing.assert_array_equal(again.std(), model.std())
    assert again.storage == model.storage
    assert again.errors == model.errors
    assert len(again.errors) == 3


def test_a_model_describes_itself():
    model = model_of("joint")
    assert (model.dims, model.shape, model.stored_shape) == (
        ("t", "x", "y"),
        (12, 5, 5),
        (12, 5, 5),
    )
    assert (model.grows, model.hierarchy) == (0, ("x", "y", "t"))
    assert (model.joint_ridge, model.dropped, model.storage) == (1e-2, 0.0, "float64")
    assert model.ranks == (12, 5, 5)
    assert len(set(model.errors)) == 1


def test_a_known_axis_is_not_searched_for_nodes():
    model = model_of("level")
    axes = model.axes_at({"x": [0.1]})
    queries = model.queries(axes)
    assert queries[0] is model.cascade.coordinates[0]
    assert queries[1].tolist() == [0.1]


def test_what_lies_outside_is_known():
    model = model_of("level")
    outside = model.outside(model.axes_at({"t": [-1.0, 0.0, 11.0, 11.5], "x": [1.0, 1.1]}))
    assert [mask.tolist() for mask in outside[:2]] == [[True, False, False, True], [False, True]]
    assert not outside[2].any()


@pytest.mark.parametrize("depth", [0, 4])
def test_weights_have_a_depth_of_one_to_the_number_of_levels(depth):
    with pytest.raises(SettingError, match=f"Invalid depth {depth}. It must be 1 to 3"):
        model_of("level").weights(depth)


# ---- stations

STATIONS = {"lat": [-30, 12.5, 60], "station": ["c", "c", "a"]}


def test_stations_are_answered_at_all_coordinates_of_the_other_dimensions():
    model = fit(sample())
    answers, errors = model.predict_stations(STATIONS), model.std_stations(STATIONS)
    assert (answers.dims, answers.name, errors.name) == (("station", "time"), "tas", "tas_std")
    assert answers.station.values.tolist() == ["c", "c", "a"]
    assert answers.lat.values.tolist() == [-30, 12.5, 60]
    assert answers.lat.dims == ("station",)
    assert answers.lat.attrs["units"] == "degrees_north"
    assert answers.attrs["units"] == errors.attrs["units"] == "K"
    np.testing.assert_array_equal(answers.time, sample().time)
    for i, (lat, station) in enumerate(zip(*STATIONS.values(), strict=True)):
        alone = model.predict(lat=lat, station=station)
        np.testing.assert_allclose(answers[i], alone, rtol=1e-12, atol=1e-12)
        alone = model.std(lat=lat, station=station)
        np.testing.assert_allclose(errors[i], alone, rtol=1e-9, atol=1e-12)


def test_stations_are_answered_at_given_coordinates_and_smoothed():
    model = fit(sample(), ridge=0.1)
    at = {"time": ["2001-01-02T12:00", "2001-01-03"]}
    answers = model.predict_stations({"station": ["a", "d"], "lat": [30, 0]}, smooth=True, **at)
    assert answers.shape == (2, 2)
    points = [(t, y, s) for s, y in (("a", 30), ("d", 0)) for t in at["time"]]
    time, lat, station = zip(*points, strict=True)
    alone = model.predict_points(time=time, lat=lat, station=station, smooth=True)
    np.testing.assert_allclose(answers.values.ravel(), alone, rtol=1e-12, atol=1e-12)
    errors = model.std_stations({"station": ["a", "d"], "lat": [30, 0]}, smooth=True, **at)
    alone = model.std_points(time=time, lat=lat, station=station, smooth=True)
    np.testing.assert_allclose(errors.values.ravel(), alone, rtol=1e-9)
    one = model.predict_stations({"station": ["a", "d"], "lat": [30, 0]}, time="2001-01-03")
    assert one.dims == ("station",)
    assert one.time.values == np.datetime64("2001-01-03")


def test_stations_need_no_coordinates_of_their_own_in_the_data():
    model = fit(np.outer(np.arange(9.0), np.arange(8.0)))
    answers = model.predict_stations({"dim_0": [2, 3.5]})
    assert answers.dims == ("station", "dim_1")
    assert list(answers.coords) == ["dim_0"]


@pytest.mark.parametrize(
    ("stations", "at", "message"),
    [
        ({"lat": [1.0]}, {"lat": 3}, "'lat' were given twice"),
        ({}, {}, "at least one dimension"),
        ({"lat": [1.0]}, {}, "has a dimension 'station'. Give the stations by it"),
        ({"depth": [1.0], "station": ["a"]}, {}, "no dimension 'depth'"),
        ({"lat": [1.0, 2.0], "station": ["a"]}, {}, "equally many coordinates"),
        ({"station": ["e"]}, {}, "has no 'e'"),
    ],
)
def test_stations_that_are_none_are_refused(stations, at, message):
    with pytest.raises(SettingError, match=message):
        fit(sample()).predict_stations(stations, **at)


@pytest.mark.parametrize("cells", [1, 4, 7, 24, 1000])
@pytest.mark.parametrize("spread", [(), (0,), (0, 2)])
def test_blocks_of_points_are_the_whole_answer(cells, spread):
    model = fit(sample(), ridge=0.1)
    points = [np.array([1.0, 2.5, 3.0]), np.array([3.0, 40, -60]), np.array([0.0, 1, 1])]
    whole = model.values_at(points, spread=spread, smooth=True)
    errors = model.std_at(points, spread=spread, smooth=True)
    seen = 0
    for part, values, std in model.blocks_at(points, cells, spread=spread, std=True, smooth=True):
        np.testing.assert_allclose(values, whole[part], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(std, errors[part], rtol=1e-9)
        assert values.size <= cells
        seen += values.size
    assert seen == whole.size
    (_, _, std), *_ = model.blocks_at(points, cells, spread=spread)
    assert std is None


def test_no_points_are_one_empty_block():
    none = [np.empty(0), np.empty(0), np.empty(0)]
    ((part, values, std),) = fit(sample()).blocks_at(none, 10, std=True)
    assert (part, values.shape, std.shape) == ((slice(0, 0),), (0,), (0,))


def test_coordinates_may_be_given_by_role():
    lat, t = np.linspace(-40, 40, 9), np.arange(8.0)
    model = fit(np.outer(np.cos(lat / 30), np.sin(t / 3)), {"latitude": lat, "t": t}, ridge=1e-6)
    for ask in (model.predict, model.std):
        named, by_role = ask(latitude=12.0, t=[1.5]), ask(lat=12.0, t=[1.5])
        assert by_role.dims == named.dims == ("t",)
        assert by_role.identical(named)
    for ask in (model.predict_points, model.std_points):
        assert ask(lat=[12.0], t=[1.5]) == ask(latitude=[12.0], t=[1.5])
    with pytest.raises(SettingError, match=r"coordinate for 't' as well"):
        model.predict_points(lat=[12.0])
    with pytest.raises(SettingError, match=r"'latitude' was given twice"):
        model.predict(lat=12.0, latitude=13.0)
    with pytest.raises(SettingError, match=r"no dimension 'lon'. The model has latitude, t."):
        model.predict(lon=1.0)


@pytest.mark.parametrize("lost", [slice(4, 8), slice(1, 5)])
def test_a_longitude_that_is_there_twice_has_data_twice_where_no_ring_closes(lost):
    lon = np.arange(-180.0, 181, 45)
    values = 10 + np.cos(np.deg2rad(lon)) * np.array([[0.5], [1.0]])
    values[:, lost] = np.nan
    axes = {"lat": ("lat", [0.0, 10.0]), "lon": ("lon", lon, {"units": "degrees_east"})}
    data = xr.DataArray(values, axes, ("lat", "lon"), name="t")
    answers = fit(data, sigma={"lat": 10.0, "lon": 60.0}, kernel="matern52", ridge=1e-6).predict()
    np.testing.assert_array_equal(answers.lon, lon)
    seen = ~np.isnan(values)
    np.testing.assert_allclose(answers.values[seen], values[seen])


# The spread of the data


@pytest.mark.parametrize("options", [{}, {"compact": True}, {"noise": "joint"}, {"robust": True}])
def test_the_spread_is_the_standard_deviation_of_the_data(options, monkeypatch):
    x, y = np.linspace(0, 3, 20), np.linspace(0, 5, 30)
    values = 1e4 + np.outer(np.sin(x), np.cos(y))
    model = fit(values, {"x": x, "y": y}, **options)
    assert model.spread == pytest.approx(values.std(), rel=1e-6)
    monkeypatch.setattr("dkrls_cli.model.model._SPREAD_BLOCK", 7)
    assert model.spread == pytest.approx(values.std(), rel=1e-6)


def test_the_spread_is_that_of_observed_cells():
    rng = np.random.default_rng(1)
    x, y = np.linspace(0, 3, 12), np.linspace(0, 5, 15)
    values = np.outer(np.sin(x), np.cos(y))
    values[rng.random(values.shape) < 0.2] = np.nan
    model = fit(values, {"x": x, "y": y}, sigma=1.0, ridge=1e-4)
    assert model.spread == pytest.approx(np.nanstd(values), rel=1e-6)
    noisy = fit(values, {"x": x, "y": y}, sigma=1.0, ridge=1e-4, obs_error=0.1)
    assert noisy.spread == pytest.approx(np.nanstd(values), rel=1e-12)


def test_rows_behind_the_poles_do_not_count_for_the_spread():
    lat, lon = np.linspace(-87.5, 87.5, 36), np.arange(0.0, 360, 20)
    values = np.outer(np.sin(np.deg2rad(lat)), 1 + 0 * lon) + np.cos(np.deg2rad(lon))
    axes = {"lat": ("lat", lat, {"units": "degrees_north"})}
    axes["lon"] = ("lon", lon, {"units": "degrees_east"})
    model = fit(xr.DataArray(values, axes, ["lat", "lon"]), poles="scalar", sigma=30.0, ridge=1e-6)
    assert model.poles is not None
    assert model.spread == pytest.approx(values.std(), rel=1e-6)
