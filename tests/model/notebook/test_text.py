"""The one line of a model says what it is, whatever its labels hold, and waits for nothing."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from dkrls_cli import fit
from dkrls_cli.model.notebook.text import clip, known_errors, range_text

X, T = np.linspace(0.0, 3.0, 12), np.arange(10.0)


@pytest.fixture(scope="module")
def model():
    values = np.outer(np.sin(X), np.cos(T / 3))
    data = xr.DataArray(values, {"x": X, "t": T}, ("x", "t"), "wave", {"units": "mm"})
    return fit(data, levels=["t", "x"], kernel={"x": "cubic", "t": "gaussian"}, ridge={"t": 1e-9})


def test_a_line_has_variable_sizes_kernels_and_errors_in_order_of_levels(model):
    by_dim = dict(zip(model.dims, model.errors, strict=True))
    sigma = model.level_of("t").kernel.sigma
    assert repr(model) == (
        f"<dkrls_cli.Model wave [mm]: x 12 x t 10; t gaussian({sigma:.3g}), x cubic; "
        f"cv error {by_dim['t']:.3g}, {by_dim['x']:.3g}>"
    )
    assert by_dim["t"] != by_dim["x"]


def test_equal_errors_are_said_once():
    values = np.where(np.eye(12, 10) > 0, np.nan, np.outer(np.sin(X), np.cos(T / 3)))
    gaps = fit(values, {"x": X, "t": T}, kernel="gaussian", sigma=2.0, ridge=1e-6)
    assert len(known_errors(gaps)) == 1
    assert repr(gaps).count("e-") <= 1


def test_a_dimension_of_one_coordinate_has_no_error():
    single = fit(np.sin(X)[None], {"t": [0.0], "x": X}, kernel="cubic")
    assert known_errors(single) == [single.errors[1]]
    assert single.errors[0] != single.errors[1]


def test_a_line_does_not_wait_for_error_bars(model):
    bare = replace(model, known_bars=None)
    assert "cv error" not in repr(bare)
    assert "_calibrated" not in vars(bare)
    _ = bare.errors
    assert "cv error" in repr(bare)


def test_a_line_stays_one_line_of_some_length(model):
    odd = replace(model, name="a\nb" * 500, attrs={"units": "x\n" * 500})
    assert "\n" not in repr(odd)
    assert len(repr(odd)) < 300


@pytest.mark.parametrize(("size", "kept"), [(40, 40), (41, 40)])
def test_long_texts_are_cut_to_forty_characters(size, kept):
    assert len(clip("x" * size)) == kept
    assert clip("x" * size).endswith("…") == (size > 40)


def test_a_range_has_both_ends_or_the_one_coordinate(model):
    assert range_text(model.axis_of("x")) == "0.0 to 3.0"
    assert range_text(model.axis_of("t").take([4])) == "4.0"
    assert range_text(model.axis_of("t").take([4, 1])) == "1.0 to 4.0"
