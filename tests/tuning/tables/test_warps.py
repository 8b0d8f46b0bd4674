"""Warps as candidates: where they are tried, and where they are taken."""

import numpy as np
import pytest

from dkrls_cli.cascade.kernels import gram
from dkrls_cli.tuning.slices.choice import choose_level
from dkrls_cli.tuning.tables.warps import warps_worth_trying

LOG = np.geomspace(1.0, 1e4, 21)


@pytest.mark.parametrize(
    ("coordinates", "tried"),
    [
        (LOG, ["log", "sqrt"]),
        (np.linspace(1.0, 10.0, 12) ** 2, ["sqrt"]),
        (np.geomspace(1.0, 3.9, 12), []),
        (np.arange(1.0, 40.0), []),
        (-LOG, []),
        (np.append(LOG, 0.0), []),
        (LOG[:3], []),
        (np.delete(np.arange(1.0, 60.0), [3, 9, 20, 21, 40]), []),
    ],
)
def test_warps_are_tried_where_they_make_steps_more_even(coordinates, tried):
    assert warps_worth_trying(np.random.default_rng(0).permutation(coordinates)) == tried


def test_a_function_of_the_logarithm_is_seen_as_one():
    data = np.sin(np.outer(np.log(LOG), [1.0, 0.7, 0.5])) + 0.1
    data += 1e-3 * np.random.default_rng(0).standard_normal(data.shape)
    choice = choose_level(LOG, data)
    kernel = choice.taken.kernel
    assert kernel.warp == "log"
    assert {c.kernel.warp for c in choice.tried} == {None, "log", "sqrt"}
    assert choice.taken in choice.tried
    spectrum = choice.spectra[kernel]
    rebuilt = (spectrum.vectors * spectrum.values) @ spectrum.vectors.T
    np.testing.assert_allclose(rebuilt, gram(kernel, LOG, LOG), atol=1e-12)
    plain = choose_level(np.log(LOG), data).taken
    assert (kernel.sigma, choice.taken.ridge) == (plain.kernel.sigma, plain.ridge)


def test_a_warp_that_is_named_is_kept_and_none_is_tried_beside_a_family():
    data = np.sin(np.outer(np.log(LOG), [1.0, 0.7]))
    named = choose_level(LOG, data, family="sqrt-matern32", sigma=5.0, ridge=1e-6).taken
    assert (named.kernel.name, named.kernel.sigma) == ("sqrt-matern32", 5.0)
    assert {c.kernel.warp for c in choose_level(LOG, data, family="matern32").tried} == {None}
    assert choose_level(LOG, data, family="log-linear").taken.kernel.name == "log-linear"
