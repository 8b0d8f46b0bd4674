import numpy as np
import pytest
from globe import eastward, planar, ring, rows, scalar

from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.poles.continuation import Continuation, plan_rows
from dkrls_cli.tuning.poles import choice
from dkrls_cli.tuning.poles.choice import choose_sign

LEVEL = Level("lat", Kernel("matern52", 40.0, constant=1.0), 1e-8)


def choose(field, lat, signs=(1, -1), mean=0.0, level=LEVEL, noise=0.0):
    """Return the sign that is chosen for a field; its rows begin with the first sign."""
    lon = ring(24)
    values = field(lat, lon)
    values += noise * np.random.default_rng(0).normal(size=values.shape)
    ring_level = Level("lon", Kernel("gaussian", 60.0, 360.0))
    found = Continuation(0, 1, signs[0], *plan_rows(lat), lon, ring_level)
    whole = found.extend_latitudes(lat)
    return choose_sign(found, whole, found.extend(values) - mean, mean, level, signs)


@pytest.mark.parametrize("kind", ["pole", "cell"])
@pytest.mark.parametrize("mean", [0.0, 3.0])
@pytest.mark.parametrize(("field", "sign"), [(scalar, 1), (eastward, -1), (planar, 0)])
def test_the_sign_is_that_of_the_field(kind, mean, field, sign):
    lat = rows(kind, 19)
    assert choose(field, lat, mean=mean) == sign
    assert choose(field, lat[::-1], (-1, 1), mean=mean) == sign


@pytest.mark.parametrize(("field", "sign"), [(scalar, 1), (eastward, -1)])
def test_only_signs_that_may_be_are_chosen(field, sign):
    assert choose(field, rows("pole", 19), (sign,)) == sign
    assert choose(field, rows("pole", 19), (-sign,)) == 0


@pytest.mark.parametrize("lat", [np.linspace(-90, 20, 23), np.linspace(20, 90, 15)])
def test_one_pole_is_enough(lat):
    assert choose(scalar, lat) == 1
    assert choose(eastward, lat) == -1


def test_noise_and_constants_are_no_fields_on_the_globe():
    noise = Level("lat", Kernel("matern12", 5.0), 1.0)
    assert choose(lambda lat, lon: np.zeros((lat.size, lon.size)), rows("pole", 19)) == 0
    assert choose(scalar, rows("pole", 19), noise=100.0, level=noise) == 0


def test_rows_far_from_the_pole_do_not_count(monkeypatch):
    calls = []
    monkeypatch.setattr(choice, "gram", lambda k, a, b: calls.append(a.size) or gram(k, a, b))
    assert choose(scalar, rows("cell", 200)) == 1
    assert set(calls) == {32, 44}


def test_a_row_is_not_predicted_from_its_own_copy():
    def waves(lat, lon):  # rows of noise that are the same half a turn away
        size = np.random.default_rng(5).normal(size=(lat.size, 3))
        return size @ np.cos(np.outer([2.0, 4.0, 6.0], np.deg2rad(lon)))

    rough = Level("lat", Kernel("matern12", 20.0), 1e-6)
    assert choose(waves, rows("cell", 19), (1,), level=rough) == 0
