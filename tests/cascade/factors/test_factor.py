"""The interface of factors: every form has all of it."""

import inspect

import numpy as np
import pytest

from dkrls_cli.cascade.factors import banded, circulant, lowrank
from dkrls_cli.cascade.factors.banded import Banded
from dkrls_cli.cascade.factors.circulant import Circulant
from dkrls_cli.cascade.factors.factor import Factor
from dkrls_cli.cascade.factors.long import LongFactor
from dkrls_cli.cascade.factors.lowrank import LowRank
from dkrls_cli.cascade.factors.quasiseparable import Quasiseparable
from dkrls_cli.cascade.kernels import Kernel

FORMS = [Quasiseparable, Banded, Circulant, LowRank, LongFactor]
NAMES = [
    name for name, value in vars(Factor).items() if inspect.isfunction(value) and name[0] != "_"
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NAMES)
def test_every_form_has_every_method(form: type, name: str) -> None:
    own = inspect.signature(getattr(form, name))
    assert list(own.parameters) == list(inspect.signature(getattr(Factor, name)).parameters)


def test_the_interface_is_whole() -> None:
    assert set(NAMES) == {
        "solve",
        "answer",
        "prepare",
        "unexplained",
        "inverse_diagonal",
        "inverse_blocks",
        "extend",
    }


@pytest.mark.parametrize("m", [10_000, 40_000])
def test_costs_tell_a_band_from_a_low_rank(m: int) -> None:
    """Bands are cheaper for short sigmas and low ranks for long ones, with one turning point."""
    c = np.arange(float(m))
    cheaper = []
    for sigma in np.geomspace(2, m / 2, 25):
        band, rank = banded.cost(Kernel(sigma=sigma), c), lowrank.cost(Kernel(sigma=sigma), c)
        assert band or rank
        cheaper.append(band is not None and (rank is None or band.operations < rank.operations))
    assert cheaper[0]
    assert not cheaper[-1]
    assert np.count_nonzero(np.diff(cheaper)) == 1


def test_an_even_circle_is_the_cheapest() -> None:
    kernel, c = Kernel(sigma=20.0, period=10_000.0), np.arange(10_000.0)
    costs = [module.cost(kernel, c) for module in (circulant, banded, lowrank)]
    assert all(costs)
    assert costs[0].operations == min(cost.operations for cost in costs)
    assert costs[0].memory == min(cost.memory for cost in costs)
