"""Spectra of Gram matrices that are computed once and then looked up."""

from __future__ import annotations

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.spectrum import Spectrum, decompose

HELD = 2**27
"""Bytes of spectra that are held: 30 on 750 coordinates."""


class SpectrumCache:
    """Full spectra of Gram matrices, by kernel and coordinates.

    Those that were used last are held, up to a number of bytes; others are computed again.

    Examples
    --------
    >>> import numpy as np
    >>> spectra, x = SpectrumCache(), np.arange(5.0)
    >>> spectra.of(Kernel(), x) is spectra.of(Kernel(), x.copy())
    True
    """

    def __init__(self, limit: int = HELD) -> None:
        self._limit, self._bytes = limit, 0
        self._spectra: dict[tuple[Kernel, bytes], Spectrum] = {}

    def of(self, kernel: Kernel, coordinates: Array) -> Spectrum:
        """Return the spectrum of gram(kernel, coordinates, coordinates), all directions of it."""
        found = self.known(kernel, coordinates)
        if found is None:
            found = decompose(gram(kernel, coordinates, coordinates))
            self._hold((kernel, coordinates.tobytes()), found)
        return found

    def known(self, kernel: Kernel, coordinates: Array) -> Spectrum | None:
        """Return the spectrum if it has been computed and is held, else None."""
        key = kernel, coordinates.tobytes()
        if key not in self._spectra:
            return None
        self._spectra[key] = self._spectra.pop(key)  # the last one now
        return self._spectra[key]

    def _hold(self, key: tuple[Kernel, bytes], spectrum: Spectrum) -> None:
        """Hold a spectrum, and drop those that were used longest ago."""
        self._spectra[key] = spectrum
        self._bytes += spectrum.vectors.nbytes
        while self._bytes > self._limit and len(self._spectra) > 1:
            oldest = self._spectra.pop(next(iter(self._spectra)))
            self._bytes -= oldest.vectors.nbytes
