"""Latitudes of Gaussian grids, against the nodes of numpy."""

from __future__ import annotations

import numpy as np
import pytest

from dkrls_cli.errors import InputError
from dkrls_cli.files.griddes.gaussian import gaussian_latitudes


@pytest.mark.parametrize("half", [1, 2, 3, 8, 48, 160, 320])
def test_gaussian_latitudes_are_roots_of_a_legendre_polynomial(half: int) -> None:
    lat = gaussian_latitudes(2 * half)
    roots = np.polynomial.legendre.leggauss(2 * half)[0][::-1]
    np.testing.assert_allclose(lat, np.degrees(np.arcsin(roots)), atol=1e-11)
    np.testing.assert_array_equal(lat, -lat[::-1])


def test_one_latitude_is_the_equator() -> None:
    assert gaussian_latitudes(1).tolist() == [0.0]


def test_more_latitudes_than_any_model_has_are_refused() -> None:
    with pytest.raises(InputError, match=r"16001 latitudes is too large. At most 16000"):
        gaussian_latitudes(16001)
