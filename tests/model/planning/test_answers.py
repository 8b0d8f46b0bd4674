"""What answers in memory take, part by part of the estimate."""

import sys

import numpy as np
import pytest

from dkrls_cli import fit
from dkrls_cli.model.answering.answers import Rules, ask
from dkrls_cli.model.planning import answers
from dkrls_cli.model.planning.answers import predict_memory

GIVEN = {"kernel": "gaussian", "sigma": 3.0}


@pytest.fixture
def bare(monkeypatch):
    """Let the program take nothing, and have no library that writes."""
    monkeypatch.setattr(answers, "process_bytes", lambda: 0)
    monkeypatch.setattr(answers, "peak_bytes", lambda: float("nan"))
    monkeypatch.delitem(sys.modules, "xarray", raising=False)


def query_of(sizes, **settings):
    model = fit(np.random.default_rng(0).random((10, 12)), **GIVEN, **settings)
    axes = model.axes_at(
        {"dim_0": np.linspace(0, 9, sizes[0]), "dim_1": np.linspace(0, 11, sizes[1])}
    )
    return ask(model, axes, Rules("refuse", "none", False))


def test_answers_and_what_is_between_them_are_counted(bare):
    wide = query_of((100, 5), ridge=0.1)
    assert predict_memory(wide, std=False, form="csv") == 20 * 500
    assert predict_memory(wide, std=True, form="csv") == 32 * 500
    assert predict_memory(wide, std=False, form="csv", held=100) == 20 * 600
    assert predict_memory(wide, std=False, form="csv", at_once=50) == 20 * 50
    narrow = query_of((1, 1), ridge=0.1)  # x first: 10 cells, then one
    assert predict_memory(narrow, std=False, form="csv") == 8 * 11


def test_libraries_that_write_and_weights_of_a_joint_ridge_are_counted(bare, monkeypatch):
    query = query_of((100, 5), ridge=0.1)
    least = predict_memory(query, std=False, form="csv")
    assert predict_memory(query, std=False, form="nc") == least + 138_000_000
    assert predict_memory(query, std=False, form="zarr") == least + 120_000_000
    joint = query_of((100, 5), noise="joint", ridge=0.1)
    assert predict_memory(joint, std=False, form="csv") == least + 16 * 120
    monkeypatch.setitem(sys.modules, "xarray", sys)
    assert predict_memory(query, std=False, form="nc") == least
    monkeypatch.setattr(answers, "peak_bytes", lambda: 1e9)
    assert predict_memory(query, std=False, form="nc") == 1_000_000_000
