"""Products with fibres: the whole product, whatever parts it is made in."""

import numpy as np
import pytest

from dkrls_cli.cascade.streaming import products as module
from dkrls_cli.cascade.streaming.products import Both, fold, multiply, multiply_all


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("small", [1, 3 * 11 * 20, 10**6])
def test_products_are_made_of_parts(axis, small, monkeypatch):
    rng, shape = np.random.default_rng(6), [7, 9, 8]
    shape[axis] = 20
    data, rows = rng.standard_normal(shape), rng.standard_normal((11, 20))
    fibres = fold(data, axis)
    found = np.full((len(fibres), 11, fibres.shape[2]), np.nan)
    monkeypatch.setattr(module, "_FEW", 2)
    monkeypatch.setattr(module, "_SMALL", small)
    multiply(rows, fibres, found)
    np.testing.assert_allclose(found, np.einsum("pm,amb->apb", rows, fibres), atol=1e-13)


def test_parts_cover_an_axis_once_and_are_not_very_small():
    assert list(module._parts(200, 100)) == [slice(0, 100), slice(100, 200)]
    assert list(module._parts(200, 150)) == [slice(0, 150), slice(150, 200)]
    assert list(module._parts(200, module._FEW - 1)) == [slice(0, 200)]
    assert list(module._parts(0, 0)) == []


def test_numbers_in_both_precisions():
    numbers = Both.of(np.array([1.0, 1 / 3])[::-1])
    assert numbers.as_type(np.dtype(np.float32)).dtype == np.float32
    np.testing.assert_array_equal(numbers.as_type(np.dtype(np.float64)), [1 / 3, 1.0])


def test_a_tensor_is_folded_around_an_axis_also_if_it_is_a_view():
    data = np.arange(24.0).reshape(2, 3, 4)
    assert fold(data, 1).shape == (2, 3, 4)
    np.testing.assert_array_equal(
        fold(data.swapaxes(0, 2), 0)[0], data.swapaxes(0, 2).reshape(4, 6)
    )


@pytest.mark.parametrize("behind", [1, 3, 1100])
def test_groups_of_rows_are_applied_to_fibres_of_their_own(behind):
    rng = np.random.default_rng(0)
    rows, fibres = rng.standard_normal((4, 16, 70)), rng.standard_normal((2, 4, 70, behind))
    room = np.full((2, 66, behind), np.nan)  # answers lie between others
    out = room[:, 1:65].reshape(2, 4, 16, behind)
    multiply_all(rows, fibres, out)
    np.testing.assert_allclose(out, np.einsum("gpm,agmn->agpn", rows, fibres), rtol=0, atol=1e-11)
    assert np.isnan(room[:, [0, 65]]).all()
    assert not np.isnan(room[:, 1:65]).any()
