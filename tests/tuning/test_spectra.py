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


def test_gram_matrices_are_made_once(monkeypatch):
    from dkrls_cli.tuning import spectra as module

    made = []
    monkeypatch.setattr(module, "gram", lambda *given: made.append(1) or gram(*given))
    cache, x = SpectrumCache(), np.arange(6.0)
    cache.of(Kernel(), x)
    np.testing.assert_array_equal(cache.gram(Kernel(), x), gram(Kernel(), x, x))
    assert len(made) == 1
    cache.gram(Kernel(sigma=2.0), x)
    cache.gram(Kernel(), x + 1)
    assert len(made) == 3
