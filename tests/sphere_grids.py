"""Places on the sphere, and dense covariances by chord and by Legendre polynomials."""

import math

import numpy as np

from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.gaps.field import Grouping

SPHERE = Grouping(((0, 1),), sphere=True)


def places(lat, lon):
    """Return all cells of a grid as points of the unit sphere (cells, 3)."""
    up, round_ = (a.ravel() for a in np.meshgrid(np.deg2rad(lat), np.deg2rad(lon), indexing="ij"))
    flat = np.cos(up)
    return np.stack([flat * np.cos(round_), flat * np.sin(round_), np.sin(up)], axis=1)


def textbook(family, r):
    """The families as functions of the distance in length scales."""
    if family == "gaussian":
        return np.exp(-(r**2) / 2)
    if family == "matern12":
        return np.exp(-r)
    s = math.sqrt(3 if family == "matern32" else 5) * r
    return (1 + s + (s**2 / 3 if family == "matern52" else 0.0)) * np.exp(-s)


def chordal(family, sigma, ones, others=None):
    """Return the kernel between points of the sphere; sigma in degrees of arc."""
    others = ones if others is None else others
    chords = np.linalg.norm(ones[:, None] - others, axis=2)
    return textbook(family, chords / math.radians(sigma))


def kernels_of(family, sigma, constant=0.0):
    """Return the kernels of latitude and longitude of a group on the sphere."""
    return [Kernel(family, sigma, None, constant), Kernel(family, sigma, 360.0, constant)]


def rotation(seed):
    """Return a matrix that turns the sphere, at random."""
    turned, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((3, 3)))
    return turned * np.sign(np.linalg.det(turned))


def isotropic(points, sigma, seed, number=2000):
    """Return a smooth field at points of the sphere: waves in space, alike in all directions."""
    rng = np.random.default_rng(seed)
    waves = rng.standard_normal((3, number)) / math.radians(sigma)
    return np.cos(points @ waves + rng.uniform(0, 2 * math.pi, number)).sum(1) * math.sqrt(
        2 / number
    )
