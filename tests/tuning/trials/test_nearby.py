"""Settings are judged by the nearest cells of hidden ones, as a dense solve would predict them."""

import math

import numpy as np
import pytest

from dkrls_cli.cascade.kernels import FAMILIES, Kernel, gram
from dkrls_cli.gaps.field import Grouping, make_field
from dkrls_cli.gaps.solve import complete
from dkrls_cli.tuning.joint import JointSetting
from dkrls_cli.tuning.masks import HiddenWindow
from dkrls_cli.tuning.trials import nearby
from dkrls_cli.tuning.trials.nearby import NearbyTrials

LAT, LON = np.linspace(-80.0, 80.0, 9), np.arange(12) * 30.0
AXES = (LAT, LON)


def window(seed=0, axes=AXES, share=0.2):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal([c.size for c in axes])
    hidden = rng.random(values.shape) < share
    return HiddenWindow(tuple(axes), values, hidden, values)


def trials(part, mean=0.0):
    return NearbyTrials([part], mean, np.random.default_rng(0))


def dense_error(part, covariance, ridge, mean=0.0):
    """Return the geometric mean over distances of errors of kriging from all observed cells."""
    seen = np.isfinite(part.seen).ravel()
    k = covariance[np.ix_(seen, seen)] + ridge * np.eye(seen.sum())
    answers = covariance[:, seen] @ np.linalg.solve(k, part.values.ravel()[seen] - mean)
    missed = (answers.reshape(part.values.shape) + mean - part.values)[part.hidden]
    return math.exp(
        0.5
        * sum(
            np.mean(part.powers == p) * math.log(np.mean(missed[part.powers == p] ** 2))
            for p in np.unique(part.powers)
        )
    )


def points():
    lat, lon = (np.radians(c).ravel() for c in np.meshgrid(*AXES, indexing="ij"))
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=-1)


@pytest.fixture
def all_cells(monkeypatch):
    """Every hidden cell is predicted, from all observed ones."""
    monkeypatch.setattr(nearby, "_NEIGHBOURS", 10_000)
    monkeypatch.setattr(nearby, "_CELLS", 10_000)


@pytest.mark.usefixtures("all_cells")
@pytest.mark.parametrize("mean", [0.0, 0.7])
def test_with_all_cells_as_neighbours_a_product_is_predicted_as_by_a_dense_solve(mean):
    part = window()
    kernels = (Kernel("matern32", 40.0, None, 0.5), Kernel("gaussian", 50.0, 360.0))
    covariance = np.kron(*(gram(k, c, c) for k, c in zip(kernels, AXES, strict=True)))
    found = trials(part, mean).attempt(JointSetting(kernels, 0.1), None)
    assert found.error == pytest.approx(dense_error(part, covariance, 0.1, mean))


@pytest.mark.usefixtures("all_cells")
def test_a_constant_of_the_whole_grid_is_left_out():
    part = window()
    kernels = (Kernel("matern32", 40.0, None, 0.5), Kernel("gaussian", 50.0, 360.0, 2.0))
    covariance = np.kron(*(gram(k, c, c) for k, c in zip(kernels, AXES, strict=True))) - 1.0
    found = trials(part).attempt(JointSetting(kernels, 0.1), None)
    assert found.error == pytest.approx(dense_error(part, covariance, 0.1))


@pytest.mark.usefixtures("all_cells")
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_a_plane_has_one_distance_with_two_scales(share):
    part = window()
    kernels = (Kernel("matern12", 40.0), Kernel("matern12", 70.0, 360.0))
    lat, lon = np.meshgrid(*AXES, indexing="ij")
    d = (lat.ravel()[:, None] - lat.ravel()) / 40.0
    e = (360 / math.pi) * np.sin(math.pi * (lon.ravel()[:, None] - lon.ravel()) / 360) / 70.0
    r = np.sqrt(d**2 + e**2)
    covariance = (1 - share) * np.exp(-r) + share * np.exp(-r / 0.2)
    grouping = Grouping(((0, 1),), share, 0.2 if share else 1.0)
    found = trials(part).attempt(JointSetting(kernels, 0.1, grouping), None)
    assert found.error == pytest.approx(dense_error(part, covariance, 0.1))


@pytest.mark.usefixtures("all_cells")
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("family", ["matern12", "matern52"])
def test_on_the_sphere_the_distance_is_the_chord(family, turned):
    part = window()
    kernels = [Kernel(family, 40.0, None, 0.0), Kernel(family, 40.0, 360.0, 0.0)]
    chords = np.sqrt(np.maximum(2 - 2 * points() @ points().T, 0)) / math.radians(40.0)
    expected = dense_error(part, FAMILIES[family](chords), 0.1)
    if turned:  # longitude is the first axis
        part = HiddenWindow(AXES[::-1], part.values.T, part.hidden.T, part.values.T)
        kernels = kernels[::-1]
    setting = JointSetting(tuple(kernels), 0.1, Grouping(((0, 1),), sphere=True))
    assert trials(part).attempt(setting, None).error == pytest.approx(expected)


def test_settings_are_judged_alike_whatever_was_judged_before():
    """Distances are kept, and scaled for every setting."""
    search, plane, sphere = trials(window()), Grouping(((0, 1),)), Grouping(((0, 1),), sphere=True)
    for sigma in (40.0, 90.0, 40.0):
        for grouping in (plane, sphere, Grouping()):
            kernels = (Kernel("matern32", sigma), Kernel("matern32", sigma, 360.0))
            setting = JointSetting(kernels, 0.1, grouping)
            fresh = trials(window()).attempt(setting, None).error
            assert search.attempt(setting, None).error == fresh


@pytest.mark.usefixtures("all_cells")
def test_a_group_stands_beside_another_axis():
    axes = (np.arange(4.0), np.arange(6.0), np.arange(5.0))
    part = window(axes=axes)
    kernels = (Kernel("matern52", 2.0, None, 1.0), *(Kernel("matern12", 3.0),) * 2)
    y, x = np.meshgrid(*axes[1:], indexing="ij")
    r = np.hypot(y.ravel()[:, None] - y.ravel(), x.ravel()[:, None] - x.ravel()) / 3.0
    covariance = np.kron(gram(kernels[0], axes[0], axes[0]), np.exp(-r))
    setting = JointSetting(kernels, 0.1, Grouping(((1, 2),)))
    assert trials(part).attempt(setting, None).error == pytest.approx(
        dense_error(part, covariance, 0.1)
    )


def test_forty_neighbours_tell_nearly_what_all_cells_do():
    """A rough field with a hole: the score of a solve on the whole window, within 6 %."""
    axes = (np.arange(50.0), np.arange(60.0))
    kernels = (Kernel("matern12", 12.0), Kernel("matern12", 12.0))
    grouping = Grouping(((0, 1),))
    values = make_field(axes, kernels, grouping).draw(np.random.default_rng(3))
    hidden = np.zeros(values.shape, bool)
    hidden[12:26, 20:38] = True
    part = HiddenWindow(axes, values, hidden, values)
    for sigma in (2.0, 12.0, 50.0):
        own = tuple(Kernel("matern12", sigma) for _ in axes)
        done = complete(part.seen, axes, own, 0.01, grouping=grouping, tolerance=1e-6)
        missed = (done.values - values)[hidden]
        expected = math.exp(
            sum(
                np.mean(part.powers == p) * math.log(np.mean(missed[part.powers == p] ** 2))
                for p in np.unique(part.powers)
            )
            / 2
        )
        found = trials(part).attempt(JointSetting(own, 0.01, grouping), None)
        assert found.error == pytest.approx(expected, rel=0.06)


def test_a_setting_is_tried_once_and_counted():
    search = trials(window())
    setting = JointSetting((Kernel("matern32", 40.0), Kernel("matern32", 50.0, 360.0)), 0.1)
    one = search.attempt(setting, None)
    assert search.attempt(setting, one) is one
    assert search.tried == 1
    assert one.windows == ()


def test_a_singular_covariance_has_no_finite_error():
    axes = (np.arange(40.0), np.arange(3.0))
    search = trials(window(axes=axes))
    kernels = (Kernel("gaussian", 1e9), Kernel("gaussian", 1e9))
    assert search.attempt(JointSetting(kernels, 0.0), None).error == math.inf


def test_without_hidden_cells_all_settings_are_alike():
    part = window(share=0.0)
    setting = JointSetting((Kernel("matern32", 40.0), Kernel("matern32", 50.0, 360.0)), 0.1)
    assert trials(part).attempt(setting, None).error == 0.0
