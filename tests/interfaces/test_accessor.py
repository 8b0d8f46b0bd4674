"""The methods of DataArrays are the functions of the same names."""

import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

import dkrls_cli

GIVEN = {"kernel": "gaussian", "sigma": 2.0, "ridge": 1e-6}
TARGET = xr.Dataset(coords={"x": [0.5, 1.5]})


@pytest.fixture(scope="module")
def data():
    x, t = np.linspace(0, 3, 12), np.arange(10.0)
    found = xr.DataArray(np.outer(np.sin(x), np.cos(t / 3)), {"x": x, "t": t}, ("x", "t"), "v")
    return found.where(found != found[3, 4])


def test_every_method_is_the_function_of_its_name(data):
    methods, known = data.dkrls, dkrls_cli.fit(data, **GIVEN)
    xr.testing.assert_identical(methods.fit(**GIVEN).predict(x=0.4), known.predict(x=0.4))
    xr.testing.assert_identical(
        methods.fill(std=True, **GIVEN), dkrls_cli.fill(data, std=True, **GIVEN)
    )
    xr.testing.assert_identical(
        methods.regrid(TARGET, **GIVEN), dkrls_cli.regrid(data, TARGET, **GIVEN)
    )
    found, expected = methods.validate(model=known), dkrls_cli.validate(data, model=known)
    np.testing.assert_equal(found.metrics, expected.metrics)
    xr.testing.assert_identical(methods.check(), dkrls_cli.check(data))


def run(code):
    code += "\nprint(hasattr(xarray.DataArray, 'dkrls'))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return out.stdout.strip() == "True"


@pytest.mark.parametrize(
    ("code", "there"),
    [
        ("import xarray, dkrls_cli", True),
        ("import dkrls_cli, xarray", False),
        ("import dkrls_cli, xarray; dkrls_cli.DkrlsError", True),
        ("import dkrls_cli, xarray; import dkrls_cli.interfaces.accessor", True),
    ],
)
@pytest.mark.slow
def test_the_methods_are_there_once_both_are_imported(code, there):
    assert run(code) == there
