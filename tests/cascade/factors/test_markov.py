"""States of Matern kernels: products of u and v are the kernel, and transitions lead v on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.cascade.factors.markov import STATES, before, behind, is_markov, transition
from dkrls_cli.cascade.kernels import FAMILIES, Kernel, gram

lengths = st.floats(0, 50)


@pytest.mark.parametrize("family", STATES)
@given(x=lengths, y=lengths, sigma=st.floats(0.1, 1e4))
def test_u_times_v_is_the_kernel(family: str, x: float, y: float, sigma: float) -> None:
    kernel = Kernel(family, sigma)
    product = behind(kernel, np.array(x)) @ before(kernel, np.array(y))
    expected = gram(kernel, np.array([x]), np.array([-y]))[0, 0]
    np.testing.assert_allclose(product, expected, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("family", STATES)
@given(y=lengths, step=lengths, sigma=st.floats(0.1, 1e4))
def test_a_transition_leads_v_to_the_next_edge(
    family: str, y: float, step: float, sigma: float
) -> None:
    kernel = Kernel(family, sigma)
    led = transition(kernel, np.array(step)) @ before(kernel, np.array(y))
    np.testing.assert_allclose(led, before(kernel, np.array(y + step)), rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("family", STATES)
def test_states_far_away_are_zero_and_not_missing(family: str) -> None:
    far = np.array([1e6, 1e300])
    for function in (behind, before, transition):
        np.testing.assert_array_equal(function(Kernel(family, 1e-3), far), 0.0)


@pytest.mark.parametrize("family", FAMILIES)
def test_matern_kernels_on_a_line_are_markov(family: str) -> None:
    assert is_markov(Kernel(family, 2.0)) == (family != "gaussian")
    assert not is_markov(Kernel(family, 2.0, period=360.0))
