"""Spectra that are looked up instead of made twice."""

import numpy as np

from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.spectrum import decompose
from dkrls_cli.tuning.spectra import SpectrumCache

X = np.linspace(0.0, 3.0, 6)


def test_a_spectrum_is_that_of_the_gram_matrix():
    found, whole = (
        SpectrumCache().of(Kernel("matern32", 2.0), X),
        decompose(gram(Kernel("matern32", 2.0), X, X)),
    )
    np.testing.assert_array_equal(found.vectors, whole.vectors)
    np.testing.assert_array_equal(found.values, whole.values)


def test_kernels_and_coordinates_are_told_apart():
    spectra = SpectrumCache()
    first = spectra.of(Kernel(), X)
    assert spectra.of(Kernel(), X.copy()) is first
    assert spectra.of(Kernel(sigma=2.0), X) is not first
    assert spectra.of(Kernel(), X + 1.0) is not first
    assert spectra.of(Kernel(), X[:-1]) is not first


def test_only_what_was_computed_is_known():
    spectra = SpectrumCache()
    assert spectra.known(Kernel(), X) is None
    found = spectra.of(Kernel(), X)
    assert spectra.known(Kernel(), X.copy()) is found
    assert spectra.known(Kernel(), X + 1.0) is None


def test_spectra_are_made_once(monkeypatch):
    from dkrls_cli.tuning import spectra as module

    made = []
    monkeypatch.setattr(module, "gram", lambda *given: made.append(1) or gram(*given))
    cache, x = SpectrumCache(), np.arange(6.0)
    for _ in range(2):
        cache.of(Kernel(), x)
        cache.of(Kernel(sigma=2.0), x)
    assert len(made) == 2


def test_what_was_used_longest_ago_is_dropped():
    """Room for two of three, each of 6 x 6 numbers."""
    spectra = SpectrumCache(limit=2 * 8 * X.size**2)
    first, second, third = Kernel(sigma=1.0), Kernel(sigma=2.0), Kernel(sigma=3.0)
    spectra.of(first, X)
    spectra.of(second, X)
    kept = spectra.of(first, X)
    spectra.of(third, X)
    assert spectra.known(second, X) is None
    assert spectra.known(first, X) is kept
    assert spectra.known(third, X) is not None
    again = spectra.of(second, X)
    np.testing.assert_array_equal(again.values, decompose(gram(second, X, X)).values)
    assert spectra.known(first, X) is None or spectra.known(third, X) is None


def test_one_spectrum_is_held_whatever_its_size():
    spectra = SpectrumCache(limit=1)
    found = spectra.of(Kernel(), X)
    assert spectra.of(Kernel(), X) is found
    spectra.of(Kernel(sigma=2.0), X)
    assert spectra.known(Kernel(), X) is None
