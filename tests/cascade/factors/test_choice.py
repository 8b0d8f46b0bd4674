"""The choice of a form by its cost."""

import numpy as np
import pytest

from dkrls_cli.cascade.factors import banded, choice
from dkrls_cli.cascade.factors.choice import build_base, is_long, least_ridge
from dkrls_cli.cascade.factors.quasiseparable import Quasiseparable
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.errors import SettingError

MATERN = Kernel("matern32", 5.0, constant=1.0)


def test_limits_are_those_that_are_documented() -> None:
    assert (choice.LONG, choice.LARGEST, choice.LARGEST_FACTOR) == (1024, 8192, 2**31)


@pytest.mark.parametrize(("size", "long"), [(1024, False), (1025, True), (8193, True)])
def test_levels_above_1024_coordinates_are_long(size: int, long: bool) -> None:
    assert is_long(MATERN, np.arange(float(size))) == long


def test_a_matern_kernel_on_a_line_is_quasiseparable() -> None:
    plain = Kernel("matern32", 5.0)
    assert isinstance(build_base(plain, np.arange(2000.0), 0.1), Quasiseparable)


def test_every_form_has_a_least_ridge() -> None:
    c = np.arange(3000.0)
    assert least_ridge(MATERN, c) == 1e-12
    assert least_ridge(Kernel("gaussian", 5.0), c) == banded.LEAST_EIGENVALUE == 1e-12
    assert least_ridge(Kernel("gaussian", 1000.0), c) == 0.0
    assert least_ridge(Kernel("gaussian", 5.0, period=3000.0), c) == 0.0


def test_a_form_that_does_not_fit_into_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "LARGEST_FACTOR", 1000)
    with pytest.raises(
        SettingError, match="on 2000 coordinates would take more than 0 GB"
    ) as caught:
        build_base(Kernel("matern32", 5.0), np.arange(2000.0), 0.1)
    assert caught.value.setting == "kernel"
    assert not is_long(MATERN, np.arange(2000.0))
    assert is_long(MATERN, np.arange(9000.0))


def test_a_spline_is_never_long_and_refused_where_it_is_too_large() -> None:
    assert not is_long(Kernel("cubic"), np.arange(1025.0))
    assert not is_long(Kernel("cubic"), np.arange(float(choice.LARGEST)))
    with pytest.raises(SettingError, match="A cubic spline through 8193 coordinates is too large"):
        is_long(Kernel("cubic"), np.arange(choice.LARGEST + 1.0))


def test_the_cost_of_a_warped_kernel_is_that_on_warped_coordinates() -> None:
    x = np.geomspace(1.0, 1e4, 2000)
    warped, plain = Kernel("gaussian", 0.05, warp="log"), Kernel("gaussian", 0.05)
    assert choice.estimate(warped, x) == choice.estimate(plain, np.log(x))
    assert least_ridge(warped, x) == least_ridge(plain, np.log(x))
