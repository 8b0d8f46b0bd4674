"""Levels under one joint ridge: what is chosen, and for which cells."""

import numpy as np
import pytest

from dkrls_cli import fit
from dkrls_cli.cascade.kernels import gram
from dkrls_cli.gaps.solve import complete
from dkrls_cli.model.training import joint

RNG = np.random.default_rng(5)
X, D = np.linspace(0, 4, 9), np.sort(RNG.uniform(0, 6, 11))
CLEAN = np.sin(np.add.outer(X, D / 2)) + 3.0
GAPS = RNG.random(CLEAN.shape) < 0.3
VALUES = np.where(GAPS, np.nan, CLEAN)
GIVEN = {"kernel": "matern52", "sigma": {"x": 1.5, "d": 2.0}, "ridge": 1e-3}


def test_settings_are_chosen_for_missing_cells_that_are_not_land():
    land, cloud = np.zeros((4, 5, 6), bool), np.zeros((4, 5, 6), bool)
    land[1, 2:4] = True
    cloud[2, 0, 3] = cloud[3, 1:3, :2] = True
    for last in range(3):
        ground, clouds = np.moveaxis(land, 2, last), np.moveaxis(cloud, 2, last)
        np.testing.assert_array_equal(joint._targets(~(ground | clouds), last), clouds)
        np.testing.assert_array_equal(joint._targets(~ground, last), ground)  # nothing else
    one = ~(land | cloud)[..., :1]
    np.testing.assert_array_equal(joint._targets(one, 2), ~one)


def test_the_search_is_told_which_cells_are_not_land(monkeypatch):
    class ToldError(Exception):
        pass

    def choose(*given, targets, **options):
        raise ToldError(targets)

    monkeypatch.setattr(joint, "choose_with_gaps", choose)
    values = np.where(np.arange(11) == 4, np.nan, 1.0) * CLEAN[:, None, :]
    values[:3, 0, 7] = np.nan
    with pytest.raises(ToldError) as told:
        fit(values, {"t": X, "one": [0.0], "d": D}, ["one", "d", "t"])
    # the column without any value is dropped before
    np.testing.assert_array_equal(np.argwhere(told.value.args[0]), [[0, 6], [1, 6], [2, 6]])


def test_every_level_is_decomposed_once_and_its_spectrum_handed_on(monkeypatch):
    handed = []

    def completed(*args, **options):
        handed.append(options["spectra"])
        return complete(*args, **options)

    def fitted(*args, train=joint.fit_cascade, **options):
        handed.append(options["spectra"])
        return train(*args, **options)

    monkeypatch.setattr(joint, "complete", completed)
    monkeypatch.setattr(joint, "fit_cascade", fitted)
    model = fit(VALUES, {"x": X, "d": D}, **GIVEN)
    assert all(a is b for a, b in zip(handed[0], handed[1], strict=True))
    for spectrum, level, nodes in zip(handed[0], model.levels, (X, D), strict=True):
        rebuilt = (spectrum.vectors * spectrum.values) @ spectrum.vectors.T
        np.testing.assert_allclose(rebuilt, gram(level.kernel, nodes, nodes), atol=1e-12)
