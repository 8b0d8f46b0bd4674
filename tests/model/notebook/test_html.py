"""What a notebook shows stands alone, is well formed, escaped and small, and never fails."""

from dataclasses import replace
from xml.etree import ElementTree as Xml

import numpy as np
import pytest
import xarray as xr

import dkrls_cli.model.notebook.html as page
from dkrls_cli import fit

GIVEN = {"kernel": "gaussian", "sigma": 1.0, "ridge": 1e-6}


def noise(*shape):
    return np.random.default_rng(1).standard_normal(shape)


@pytest.fixture(scope="module")
def model():
    values = noise(5, 6, 4)
    values[0, 0, 0] = np.nan
    attrs = {"units": "m s-1", "long_name": "wind"}
    return fit(xr.DataArray(values, dims=("y", "x", "t"), name="u", attrs=attrs), **GIVEN)


def texts(html):
    """Return the texts of a fragment, which has to be well formed."""
    return [text.strip() for text in Xml.fromstring(html.replace("<br>", "<br/>")).itertext()]


def test_a_page_has_levels_errors_and_a_map(model):
    html = model._repr_html_()
    words = texts(html)
    assert {"u", "dimension", "kernel", "y", "gaussian(1)", "joint"} <= set(words)
    assert f"error on data left out: {model.errors[0]:.3g} m s-1" in words
    assert any(text.startswith("0.833 % of the cells") for text in words)
    assert any("u along x and y at t 2" in text for text in words)
    assert html.count("<svg") == 1


def test_ridges_of_levels_and_errors_by_level_are_shown():
    html = fit(np.outer(np.arange(9.0) ** 2, np.arange(8.0)), **GIVEN)._repr_html_()
    assert "1e-06" in texts(html)
    assert "left out, by level:" in html


def test_a_page_stands_alone(model):
    html = model._repr_html_()
    for foreign in ("http", "url(", "<script", "@import", "<link", "src="):
        assert foreign not in html


def test_what_a_file_says_is_escaped(model):
    evil = "<script>alert('&')</script>"
    attrs = {"units": evil, "long_name": f"{evil}{evil}"}
    html = replace(model, name=evil, attrs=attrs)._repr_html_()
    assert "<script" not in html
    assert texts(html)
    labels = xr.DataArray(noise(3, 4), {"<b>": ["<i>", "&amp;", '"']}, ("<b>", "z"))
    html = fit(labels, **GIVEN)._repr_html_()
    assert "<i>" not in html
    assert "&lt;i&gt; to &quot;" in html


@pytest.mark.parametrize("shape", [(300, 200), (3, 2, 40, 90), (500,), (1, 7)])
def test_a_page_is_small(shape):
    html = fit(noise(*shape), kernel="cubic")._repr_html_()
    assert len(html.encode()) < 30_000
    assert "<svg" in html
    texts(html)


def test_a_part_that_fails_is_left_out(model, monkeypatch):
    def fail(_):
        raise RuntimeError

    monkeypatch.setattr(page, "thin_values", fail)
    html = model._repr_html_()
    assert "<svg" not in html
    assert "dimension" in texts(html)
    monkeypatch.setattr(page, "_head", fail)
    monkeypatch.setattr(page, "_levels", fail)
    assert "a model" in texts(model._repr_html_())


def test_a_grid_of_nothing_but_land_at_the_place_shown_says_so():
    values = noise(4, 5, 6)
    values[2] = np.nan
    data = xr.DataArray(values, dims=("time", "y", "x"), name="u")
    html = fit(data, **GIVEN)._repr_html_()
    assert "<svg" in html
    texts(html)


def test_colours_are_those_of_the_page(model):
    style = page._STYLE
    assert "inherit" in style
    assert "color:#" not in style
