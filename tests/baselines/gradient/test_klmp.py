"""KLMP against the algorithm written out, against KLMS, and with outliers."""

import numpy as np
import pytest
from baselines.known_samples import CURVE, LONG, NEW, field, gaussian, teach

from dkrls_cli.baselines.gradient.klmp import KLMP
from dkrls_cli.baselines.gradient.klms import KLMS
from dkrls_cli.errors import SettingError


@pytest.mark.parametrize("power", [1.2, 2.0, 3.0])
def test_klmp_steps_down_the_gradient(power: float) -> None:
    model = teach(KLMP(sigma=0.5, step=0.2, power=power), LONG, CURVE)
    weights = np.zeros(len(LONG))
    for i, (x, y) in enumerate(zip(LONG, CURVE, strict=True)):
        error = y - gaussian(x[None], LONG[:i], 0.5)[0] @ weights[:i]
        weights[i] = 0.2 * abs(error) ** (power - 1) * np.sign(error)
    np.testing.assert_allclose(model.predict(NEW), gaussian(NEW, LONG, 0.5) @ weights, rtol=1e-8)


def test_klmp_of_power_two_is_klms() -> None:
    klmp, klms = KLMP(power=2.0, step=0.4), KLMS(step=0.4)
    answers = [teach(model, LONG, CURVE).predict(NEW) for model in (klmp, klms)]
    np.testing.assert_allclose(*answers, rtol=1e-12)


def test_outliers_have_less_influence_with_a_lower_power() -> None:
    spoilt = CURVE.copy()
    spoilt[::20] += 30.0
    errors = [
        np.abs(teach(KLMP(power=p, step=0.1), LONG, spoilt).predict(NEW) - field(NEW))
        for p in (1.2, 2.0)
    ]
    assert errors[0].mean() < 0.5 * errors[1].mean()


def test_the_power_is_above_one() -> None:
    with pytest.raises(SettingError, match=r"Invalid power 1\.0"):
        KLMP(power=1.0)
