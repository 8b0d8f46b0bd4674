"""A spool gives back what was put into it, tile by tile."""

from itertools import product

import numpy as np
import pytest

from dkrls_cli.model.streaming.spool import make_spool


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_tiles_have_all_samples(tmp_path, axis):
    rng = np.random.default_rng(0)
    shape, samples = [5, 6, 7], 9
    values = rng.standard_normal([samples if a == axis else s for a, s in enumerate(shape)])
    cuts = [[slice(0, s)] if a == axis else [slice(0, 2), slice(2, s)] for a, s in enumerate(shape)]
    spool = make_spool(tmp_path, axis, samples, list(product(*cuts)), "float64")
    for first, stop in ((4, 9), (0, 1), (1, 4)):  # in any order
        spool.put(np.take(values, range(first, stop), axis), first)
    for place, tile in enumerate(spool.tiles):
        here = tuple(slice(None) if a == axis else part for a, part in enumerate(tile))
        np.testing.assert_array_equal(spool.take(place), values[here])
    assert spool.bytes == values.nbytes
    assert (tmp_path / "spool").stat().st_size == values.nbytes


def test_numbers_are_kept_in_their_type(tmp_path):
    values = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)
    spool = make_spool(tmp_path, 0, 3, [(slice(0, 3), slice(0, 4))], "float32")
    spool.put(values, 0)
    assert spool.take(0).dtype == np.float32
    np.testing.assert_array_equal(spool.take(0), values)


def test_writing_goes_on_where_the_system_stops(tmp_path, monkeypatch):
    import os

    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda f, data, at: real(f, data[:7], at))
    spool = make_spool(tmp_path, 1, 5, [(slice(0, 2), slice(0, 5))], "float64")
    values = np.arange(10.0).reshape(2, 5)
    spool.put(values, 0)
    np.testing.assert_array_equal(spool.take(0), values)
