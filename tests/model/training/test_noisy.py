"""Models of observations with errors: fits, updates, files, and how much better they are."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from dkrls_cli import fill, fit, load_model, regrid, validate
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.errors import InputError, ModelFileError, SettingError
from dkrls_cli.gaps.field import make_field
from dkrls_cli.gaps.noisy.analysis import analyse
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.model.fit import retune
from dkrls_cli.model.planning.plan import plan_fit
from dkrls_cli.model.records.bars import bars_from, bars_record
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.stream import Plan, Stream
from dkrls_cli.model.training import joint

X, T = np.linspace(0, 6, 20), np.arange(24.0)
TRUTH = np.outer(np.sin(X), np.cos(T / 4))
GIVEN = {"kernel": "matern52", "sigma": {"x": 2.0, "t": 6.0}, "ridge": 1e-4}


def observed(gaps=True, seed=0):
    """Return a smooth field seen by two instruments, with its errors as a coordinate."""
    rng = np.random.default_rng(seed)
    errors = np.where(rng.random(TRUTH.shape) < 0.5, 0.02, 0.6)
    values = TRUTH + errors * rng.standard_normal(TRUTH.shape)
    if gaps:
        values[rng.random(TRUTH.shape) < 0.2] = np.nan
    array = xr.DataArray(values, {"x": X, "t": T}, ("x", "t"), "v", {"units": "K"})
    return array.assign_coords(e=(("x", "t"), errors))


def rmse(answers):
    return float(np.sqrt(np.mean((np.asarray(answers) - TRUTH) ** 2)))


@pytest.mark.slow
@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
def test_errors_pay_and_error_bars_hold_the_truth(gaps):
    data = observed(gaps)
    with_errors, without = fit(data, obs_error="e"), fit(data)
    assert rmse(with_errors.predict()) < 0.1 * rmse(without.predict())
    std = with_errors.std()
    assert float(std.min()) > 0
    good = (data.e.values < 0.1) & ~np.isnan(data.values)
    assert float(std.values[good].max()) <= 0.02 + 1e-9
    others = [fit(observed(gaps, seed), obs_error="e") for seed in (1, 2, 3)]
    held = [np.abs(m.predict() - TRUTH) <= 1.645 * m.std() for m in (with_errors, *others)]
    assert 0.8 < np.mean(held) < 0.95  # of one field 0.65 to 1: its errors depend on each other


def test_a_model_with_errors_has_a_joint_ridge_and_keeps_what_it_saw():
    data = observed()
    model = fit(data, obs_error="e", **GIVEN)
    assert model.joint_ridge == 1e-4
    seen = model.observations
    np.testing.assert_array_equal(seen.values, data.values)
    np.testing.assert_array_equal(seen.errors, np.where(np.isnan(data), 0, data.e))
    facts = model.origin["observation_errors"]
    assert (facts["source"], facts["least"], facts["most"]) == ("e", 0.02, 0.6)
    assert facts["median"] == np.median(data.e.values[~np.isnan(data)])
    assert fit(data, **GIVEN).observations is None


def test_the_model_is_the_analysis_with_its_scale():
    data = observed()
    model = fit(data, obs_error="e", mean=0.1, **GIVEN)
    kernels = [Kernel("matern52", 2.0), Kernel("matern52", 6.0)]
    noise = model.observations.errors**2 / model.known_bars.scale
    field = make_field([X, T], kernels)
    done = analyse(field, data.values, 1e-4, noise, 0.1, tolerance=1e-11, limit=2000)
    np.testing.assert_allclose(model.predict(), done.values, atol=1e-6)


def test_errors_of_zero_are_exact():
    data = observed(gaps=False)
    exact = fit(data, obs_error=0, **GIVEN)
    np.testing.assert_allclose(exact.predict(), data, atol=1e-9)
    np.testing.assert_allclose(exact.std(), 0.0, atol=1e-9)
    between = fit(data, noise="joint", **GIVEN).predict(x=X[:-1] + 0.1)
    np.testing.assert_allclose(exact.predict(x=X[:-1] + 0.1), between, atol=1e-6)


def test_constant_data_and_one_slice_can_have_errors():
    flat = fit(np.full((5, 6), 3.0), obs_error=0.5)
    np.testing.assert_allclose(flat.predict(), 3.0)
    one = fit(observed(gaps=False)[:, :1], levels=["x", "t"], obs_error="e")
    assert one.shape == (20, 1)
    grown = one.update(observed(gaps=False)[:, 1:4])
    assert grown.shape == (20, 4)
    assert grown.observations.values.shape == (20, 4)


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
def test_an_update_is_a_fit_of_all_slices_in_any_order(gaps):
    data = observed(gaps)
    start = fit(data[:, :20], obs_error="e", mean=0.0, **GIVEN)
    after = start.update(data[:, 22:]).update(data[:, 20:22])
    np.testing.assert_array_equal(after.observations.values, data.values)
    noise = after.observations.errors**2 / start.known_bars.scale
    field = make_field([X, T], [level.kernel for level in start.cascade.levels])
    done = analyse(field, data.values, 1e-4, noise, 0.0, tolerance=1e-11, limit=2000)
    np.testing.assert_allclose(after.predict(), done.values, atol=1e-6)
    at = {"x": X[:-1] + 0.1, "t": T[:-1] + 0.5}
    together = start.update(data[:, 20:])
    np.testing.assert_allclose(after.predict(**at), together.predict(**at), atol=1e-6)
    assert after.origin["observation_errors"]["source"] == "e"


def test_windows_replacements_and_ranks_keep_errors_with_their_slices():
    data = observed()
    model = fit(data[:, :20], obs_error="e", **GIVEN)
    windowed = model.update(data[:, 20:], window=8)
    np.testing.assert_array_equal(windowed.observations.values, data.values[:, 16:])
    expected = np.where(np.isnan(data), 0, data.e)
    np.testing.assert_array_equal(windowed.observations.errors, expected[:, 16:])
    better = data[:, 5:6] * 0 + 1
    replaced = model.update(better, replace=True, obs_error=0.001)
    assert (replaced.observations.errors[~np.isnan(data[:, 5]), 5] == 0.001).all()
    thinned = model.update(data[:, 20:], max_rank=10)
    assert thinned.observations.values.shape == (20, 10)


def test_a_new_slice_without_any_observation_leaves_errors_where_they_belong():
    data = observed(gaps=False)
    model = fit(data[:, :20], obs_error="e", **GIVEN)
    new = data[:, 20:].copy()
    new[:, 1] = np.nan
    after = model.update(new)
    np.testing.assert_array_equal(after.observations.errors, data.e.values[:, np.r_[:21, 22:24]])


def test_land_has_no_part_in_the_choice_of_observations_with_errors(monkeypatch):
    """It is not answered for; a grid of one time has gaps, not land."""
    targets, choose = [], joint.choose_with_gaps

    def keep(*args, **given):
        targets.append(given["targets"])
        return choose(*args, **given)

    monkeypatch.setattr(joint, "choose_with_gaps", keep)
    values = np.repeat(observed(gaps=False).values[:, :, None], 3, axis=2)
    values[4:7, 3:9] = np.nan
    values[12, 3, 1] = np.nan
    axes = {"x": X, "t": T, "z": np.arange(3.0)}
    settings = {"kernel": "matern52", "sigma": 2.0, "ridge": 0.01}
    fit(values, axes, levels=["x", "t", "z"], obs_error=0.3, **settings)
    np.testing.assert_array_equal(np.argwhere(targets[0]), [[12, 3, 1]])
    fit(values[:, :, :1], {**axes, "z": [0.0]}, ["x", "t", "z"], obs_error=0.3, **settings)
    assert np.count_nonzero(targets[1]) == 18


def test_new_slices_need_errors_if_and_only_if_the_model_has_them():
    data = observed()
    noisy, plain = fit(data[:, :20], obs_error=data.e, **GIVEN), fit(data[:, :20], **GIVEN)
    with pytest.raises(InputError, match="the new slices have none") as found:
        noisy.update(data[:, 20:])
    assert found.value.setting == "obs_error"
    assert noisy.update(data[:, 20:], obs_error="e").shape == (20, 24)
    with pytest.raises(InputError, match="the model was fitted without"):
        plain.update(data[:, 20:], obs_error=0.1)
    with pytest.raises(InputError, match="is -1 at"):
        noisy.update(data[:, 20:], obs_error=-1)


def test_a_number_is_that_of_new_slices_as_well():
    data = observed()
    model = fit(data.values[:, :20], {"x": X, "t": T[:20]}, obs_error=0.3, **GIVEN)
    after = model.update(data.values[:, 20:], T[20:])
    assert set(after.observations.errors[~np.isnan(data.values)]) == {0.3}
    other = model.update(data.values[:, 20:], T[20:], obs_error=np.full((20, 4), 0.1))
    assert set(other.observations.errors[:, 20:][~np.isnan(data.values[:, 20:])]) == {0.1}


def test_settings_are_chosen_again_with_the_errors():
    data = observed()
    model = fit(data, obs_error="e", kernel="matern52", sigma={"x": 2.0, "t": 0.5}, ridge=1e-4)
    again = retune(model)
    assert again.levels[-1].kernel.sigma > 1.0
    np.testing.assert_array_equal(again.observations.values, data.values)
    assert rmse(again.predict()) < 0.5 * rmse(model.predict())
    assert again.known_bars.scale != model.known_bars.scale


def test_a_stream_takes_errors_that_are_one_number():
    data = observed(gaps=False)
    with pytest.raises(SettingError, match="not one number"):
        Stream(fit(data[:, :20], obs_error="e", **GIVEN), Plan())
    stream = Stream(fit(data[:, :20], obs_error=0.4, **GIVEN), Plan(window=20))
    for step in range(20, 24):
        stream.step(stream.model.axes[1].at(T[step]), data.values[:, [step]])
    assert stream.model.observations.values.shape == (20, 20)
    assert set(stream.model.observations.errors.ravel()) == {0.4}


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
def test_a_model_file_gives_all_of_it_back(tmp_path, gaps):
    data = observed(gaps)
    model = fit(data[:, :20], obs_error="e", **GIVEN)
    model.save(tmp_path / "m.npz")
    again = load_model(tmp_path / "m.npz")
    at = {"x": X[:-1] + 0.1, "t": T[:19] + 0.5}
    np.testing.assert_array_equal(again.predict(**at), model.predict(**at))
    np.testing.assert_array_equal(again.std(**at), model.std(**at))
    np.testing.assert_array_equal(again.std(), model.std())
    np.testing.assert_array_equal(again.ensemble(2), model.ensemble(2))
    for part in ("values", "errors"):
        ours, theirs = (getattr(one.observations, part) for one in (model, again))
        np.testing.assert_array_equal(ours, theirs)
    assert again.origin == model.origin
    after, then = (one.update(data[:, 20:]) for one in (again, model))
    np.testing.assert_array_equal(after.predict(), then.predict())


def test_errors_that_repeat_are_stored_once():
    data = observed()
    model = fit(data, obs_error=xr.DataArray(X / 10 + 0.1, {"x": X}, ("x",)), **GIVEN)
    header, arrays = bars_record(model.known_bars)
    assert arrays["observation_errors"].shape == (20, 1)
    found = bars_from(header, arrays, (20, 24), joint=True)
    np.testing.assert_array_equal(found.observations.errors, model.observations.errors)
    constant = fit(data, obs_error=0.3, **GIVEN)
    assert bars_record(constant.known_bars)[1]["observation_errors"].shape == (1, 1)


@pytest.mark.parametrize("part", ["shape", "errors", "scale", "factors", "negative"])
def test_damaged_errors_are_refused(tmp_path, part, monkeypatch):
    model = fit(observed(), obs_error="e", **GIVEN)
    bars, seen = model.known_bars, model.observations
    damaged = {
        "shape": replace(bars, observations=replace(seen, values=seen.values[:3])),
        "errors": replace(bars, observations=replace(seen, errors=seen.errors[:3])),
        "scale": replace(bars, scale=0.0, factors=(1.0,)),
        "factors": replace(bars, factors=(0.0,)),
        "negative": replace(bars, observations=replace(seen, errors=seen.errors - 1)),
    }[part]
    header, arrays = bars_record(bars)
    if part in ("scale", "factors"):
        header |= {"scale": damaged.scale, "hole_factors": list(damaged.known_factors)}
    else:
        arrays |= {
            "observations": np.nan_to_num(damaged.observations.values),
            "observation_errors": damaged.observations.errors,
        }
    with pytest.raises(ValueError, match="errors"):
        bars_from(header, arrays, model.shape, joint=True)
    monkeypatch.setattr("dkrls_cli.model.records.bars._noisy_record", lambda _: (header, arrays))
    model.save(tmp_path / "m.npz")
    with pytest.raises(ModelFileError, match="damaged"):
        load_model(tmp_path / "m.npz")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"noise": "level"}, "need one joint ridge"),
        ({"ridge": {"x": 0.1}}, "need one joint ridge"),
        ({"folds": 3}, "Folds do not go with errors"),
    ],
)
def test_settings_that_do_not_go_with_errors_are_refused(settings, said):
    with pytest.raises(SettingError, match=said):
        fit(observed(), obs_error="e", **settings)


@pytest.mark.parametrize("values", [[7.0], [7.0, np.nan], [[np.nan, 7.0]]])
def test_one_observation_tells_nothing_of_its_error(values):
    with pytest.raises(InputError, match="Only one coordinate of every dimension has data"):
        fit(np.array(values), obs_error=0.1)


def test_long_dimensions_are_refused_before_any_work():
    for size, refused in ((2048, False), (2049, True)):
        axes = [axis_of("x", [0.0, 1.0]), axis_of("t", np.arange(float(size)))]
        assert plan_fit(axes).joint is False
        if not refused:
            assert plan_fit(axes, errors=True).joint
            continue
        with pytest.raises(SettingError, match="'t' has 2049 coordinates"):
            plan_fit(axes, errors=True)


@pytest.mark.slow
def test_groups_compact_models_and_tolerances_go_with_errors():
    data = observed(gaps=False)
    grouped = fit(data, obs_error="e", group=("x", "t"))
    assert grouped.known_bars.grouping.axes == ((0, 1),)
    assert rmse(grouped.predict()) < 0.1
    plan_fit([axis_of("x", X), axis_of("t", T)], Settings(group=("x", "t")), True, errors=True)
    full = fit(data, obs_error="e", **GIVEN)
    for small in ({"compact": True}, {"tolerance": 0.01}, {"dtype": "float32"}):
        found = fit(data, obs_error="e", **GIVEN, **small)
        assert np.abs(found.predict() - full.predict()).max() < 0.1


@pytest.mark.slow
def test_fill_changes_missing_cells_only_and_tells_the_given_errors():
    data = observed()
    done = fill(data, obs_error="e", std=True, ensemble=3, mask="none")
    seen = ~np.isnan(data.values)
    np.testing.assert_array_equal(done.v.values[seen], data.values[seen])
    np.testing.assert_array_equal(done.v_std.values[seen], data.e.values[seen])
    assert (done.v_ensemble.values[:, seen] == data.values[seen]).all()
    off = (done.v.values - TRUTH)[~seen]
    assert np.sqrt(np.mean(off**2)) < 0.05
    assert (np.abs(off) <= 1.645 * done.v_std.values[~seen]).mean() > 0.75
    plain = fill(data, std=True, mask="none")
    assert (plain.v_std.values[seen] == 0).all()
    whole = fill(observed(gaps=False), obs_error="e", std=True)
    np.testing.assert_array_equal(whole.v_std, data.e)


@pytest.mark.slow
def test_held_out_observations_are_scored_with_their_own_errors():
    data = observed()
    found = validate(data, holdout={"t": 0.25}, repeats=2, obs_error="e", **GIVEN)
    assert 0.8 < found.metrics["coverage90"] <= 1.0
    model = fit(data, obs_error="e", **GIVEN)
    bare, counted = (validate(data, model=model, obs_error=e).metrics for e in (None, "e"))
    assert bare["rmse"] == counted["rmse"]
    assert bare["coverage90"] < counted["coverage90"]


def test_regridding_uses_errors():
    data = observed()
    fine = regrid(data, {"x": X}, obs_error="e", **GIVEN)
    np.testing.assert_allclose(fine, fit(data, obs_error="e", **GIVEN).predict(), atol=1e-9)


@pytest.mark.slow
def test_members_do_not_pass_through_noisy_data():
    data = observed()
    model = fit(data, obs_error="e", **GIVEN)
    members = model.ensemble(60)
    spread = members.std("realization") / model.std()
    assert 0.9 < float(spread.mean()) < 1.1
    assert float(members.std("realization").min()) > 0


def two_instruments(kind, seed):
    """Return a rough field on a fine grid, and every second cell of it seen with errors."""
    rng = np.random.default_rng(seed)
    fine = [np.arange(0, 49.1, 0.5), np.arange(0, 59.1, 0.5)]
    truth = 5.0 * make_field(fine, [Kernel("matern32", 8.0), Kernel("matern32", 10.0)]).draw(rng)
    cells = truth[::2, ::2]
    errors = np.full(cells.shape, 0.1)
    errors[:, :30] = 3.0
    if kind == "random":
        errors = np.where(rng.random(cells.shape) < 0.5, 0.1, 3.0)
    values = cells + errors * rng.standard_normal(cells.shape)
    values[rng.random(cells.shape) < 0.3] = np.nan
    data = xr.DataArray(values, {"x": fine[0][::2], "y": fine[1][::2]}, ("x", "y"))
    return data.assign_coords(e=(("x", "y"), errors)), truth


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["half", "random"])
def test_bands_hold_the_true_field_whatever_the_instrument(kind):
    """Errors differ by a factor of 30: 90 % of cells, of gaps and between coordinates."""
    held = {"observed": [], "gaps": [], "between": []}
    better = []
    for seed in range(4):
        data, truth = two_instruments(kind, seed)
        model, cells = fit(data, obs_error="e"), truth[::2, ::2]
        inside = np.abs(model.predict() - cells) <= 1.645 * model.std()
        seen = ~np.isnan(data.values)
        held["observed"].append(inside.values[seen].mean())
        held["gaps"].append(inside.values[~seen].mean())
        at = {"x": data.x.values[:-1] + 0.5, "y": data.y.values[:-1] + 0.5}
        between = np.abs(model.predict(**at) - truth[1::2, 1::2]) <= 1.645 * model.std(**at)
        held["between"].append(float(between.mean()))
        plain = fit(data).predict().values
        better.append(np.std(model.predict().values - cells) / np.std(plain - cells))
    for where, shares in held.items():
        assert 0.86 < np.mean(shares) < 0.94, where
    assert max(better) < 0.6
