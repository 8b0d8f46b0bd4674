"""Gram matrices and their spectra that are computed once and then looked up."""

from __future__ import annotations

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.spectrum import Spectrum, decompose


class SpectrumCache:
    """Gram matrices and their full spectra, by kernel and coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> spectra, x = SpectrumCache(), np.arange(5.0)
    >>> spectra.of(Kernel(), x) is spectra.of(Kernel(), x.copy())
    True
    """

    def __init__(self) -> None:
        self._known: dict[tuple[Kernel, bytes], Spectrum] = {}
        self._grams: dict[tuple[Kernel, bytes], Array] = {}

    def gram(self, kernel: Kernel, coordinates: Array) -> Array:
        """Return the Gram matrix of a kernel on coordinates."""
        key = kernel, coordinates.tobytes()
        if key not in self._grams:
            self._grams[key] = gram(kernel, coordinates, coordinates)
        return self._grams[key]

    def of(self, kernel: Kernel, coordinates: Array) -> Spectrum:
        """Return the spectrum of gram(kernel, coordinates, coordinates), all directions of it."""
        key = kernel, coordinates.tobytes()
        if key not in self._known:
            self._known[key] = decompose(self.gram(kernel, coordinates))
        return self._known[key]

    def known(self, kernel: Kernel, coordinates: Array) -> Spectrum | None:
        """Return the spectrum if it has been computed, else None."""
        return self._known.get((kernel, coordinates.tobytes()))
