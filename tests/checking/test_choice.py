import numpy as np
import pytest

from dkrls_cli.checking.choice import CheckAxis, Predictor, choose_predictor, middle


def axes_of(*shape, **more):
    return [CheckAxis(np.arange(float(n)), **more) for n in shape]


@pytest.fixture(scope="module")
def field():
    x, y = np.meshgrid(np.arange(20) / 4, np.arange(24) / 4, indexing="ij")
    return np.sin(x) * np.cos(y) + 0.01 * np.random.default_rng(0).normal(size=(20, 24))


def test_a_prediction_does_not_contain_the_cell_itself(field):
    used = np.ones(field.shape, bool)
    used[3, 5] = False
    chosen = choose_predictor(field, used, axes_of(20, 24))
    assert chosen.steps
    left, spread = chosen.residuals(field, used)
    for cell in [(7, 9), (0, 0), (3, 5)]:
        moved = field.copy()
        moved[cell] += 1e-3  # too little to move the median
        again, same = chosen.residuals(moved, used)
        shift = middle(moved, used) - middle(field, used)
        assert again[cell] - left[cell] + shift == pytest.approx(1e-3, rel=1e-6)
        np.testing.assert_array_equal(spread, same)


def test_residuals_of_a_smooth_field_are_its_noise(field):
    used = np.ones(field.shape, bool)
    left, _ = choose_predictor(field, used, axes_of(20, 24)).residuals(field, used)
    assert np.std(left) < 0.02


def test_noise_has_no_predictor():
    noise = np.random.default_rng(1).normal(size=(15, 16))
    used = np.ones(noise.shape, bool)
    chosen = choose_predictor(noise, used, axes_of(15, 16))
    left, spread = chosen.residuals(noise, used)
    assert not chosen.steps
    np.testing.assert_allclose(left, noise - np.median(noise))
    np.testing.assert_array_equal(spread, 1.0)


def test_the_choice_is_hardly_moved_by_bad_cells(field):
    rng = np.random.default_rng(2)
    bad = rng.random(field.shape) < 0.02
    used = np.ones(field.shape, bool)
    clean = choose_predictor(field, used, axes_of(20, 24))
    found = choose_predictor(np.where(bad, field + 50, field), used, axes_of(20, 24), near=True)
    sizes = [np.median(np.abs(one.residuals(field, used)[0])) for one in (clean, found)]
    assert sizes[1] < 3 * sizes[0]


def test_series_of_labels_are_predicted_from_each_other():
    rng = np.random.default_rng(3)
    weather = rng.normal(size=200)
    values = np.outer([1.0, 2.0, -1.0, 0.5, 1.5], weather) + 0.1 * rng.normal(size=(5, 200))
    axes = [CheckAxis(np.arange(5.0), ordered=False), CheckAxis(np.arange(200.0))]
    used = np.ones(values.shape, bool)
    chosen = choose_predictor(values, used, axes)
    assert chosen.steps[0].axis == 0
    assert "measured" in chosen.steps[0].words
    assert np.std(chosen.residuals(values, used)[0]) < 0.25


def test_given_settings_are_used(field):
    used = np.ones(field.shape, bool)
    axes = axes_of(20, 24, family="gaussian", sigma=3.0, ridge=1e-4)
    chosen = choose_predictor(field, used, axes)
    assert {step.words for step in chosen.steps} == {"gaussian sigma 3 ridge 0.0001"}


def test_axes_can_be_left_aside(field):
    used = np.ones(field.shape, bool)
    chosen = choose_predictor(field, used, axes_of(20, 24), [0])
    assert [step.axis for step in chosen.steps] == [1]


def test_uneven_steps_may_be_counted():
    depth = np.cumsum(np.geomspace(1, 300, 25))
    values = np.sin(np.arange(25) / 3)[:, None] * np.ones(4)
    values += 1e-3 * np.random.default_rng(4).normal(size=values.shape)
    axes = [CheckAxis(depth), CheckAxis(np.arange(4.0))]
    used = np.ones(values.shape, bool)
    left, _ = choose_predictor(values, used, axes, [1]).residuals(values, used)
    assert np.median(np.abs(left)) < 5e-3
    assert not CheckAxis(np.arange(5.0)).is_uneven


def test_a_ring_longer_than_a_window_goes_on_across_its_seam():
    lon = np.arange(300) * 1.2
    values = np.cos(np.radians(lon))[:, None] * np.array([1.0, 2.0, 3.0])
    axes = [CheckAxis(lon, period=360.0), CheckAxis(np.arange(3.0))]
    used = np.ones(values.shape, bool)
    chosen = choose_predictor(values, used, axes, [1])
    left, spread = chosen.residuals(values, used)
    assert np.abs(left).max() < 0.01
    assert spread[0, 0] == pytest.approx(spread[150, 0], rel=1e-6)


def test_the_middle_of_nothing_is_0():
    assert middle(np.full(3, np.nan), np.ones(3, bool)) == 0.0


def test_the_size_of_residuals_is_that_by_the_first_step_and_by_all():
    walk = np.random.default_rng(0).normal(size=(30, 20)).cumsum(axis=0).cumsum(axis=1)
    walk[12, 7:9] += 5 * walk.std()
    axes = [CheckAxis(np.arange(float(n))) for n in walk.shape]
    used = np.ones(walk.shape, bool)
    trace = choose_predictor(walk, used, axes, near=True).trace(walk, used)
    first, second = (np.abs(step.left) for step in trace.results)
    by_model = first / trace.results[0].spread
    by_both = second / (trace.results[0].spread * trace.results[1].spread)
    np.testing.assert_allclose(trace.size, np.sqrt(by_model * by_both), rtol=1e-12)
    assert by_both[12, 9] > 0.9 * by_both[12, 8]  # along the second axis the bad ones agree
    assert trace.size[12, 9] < 0.5 * trace.size[12, 8]


def test_without_a_step_the_size_is_that_of_the_values():
    noise = np.random.default_rng(0).normal(size=(30, 20))
    trace = Predictor(()).trace(noise, np.ones(noise.shape, bool))
    np.testing.assert_array_equal(trace.size, np.abs(noise))
