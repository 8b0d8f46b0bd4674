"""Means over regions of models that refer to their data, with their errors and ensembles."""

import numpy as np
import pytest
from chunked_grids import referring_pair as pair

from dkrls_cli.model.answering.answers import Rules
from dkrls_cli.model.answering.ensembles import stack_members
from dkrls_cli.model.answering.regions import ask_region
from dkrls_cli.model.referring.grids import refer
from dkrls_cli.model.streaming.running import Threads

REGIONS = [
    ("lat=-20:40,lon=20:200", {"time": [1.0, 2.5]}),
    ("time=3:9", {"lat": [3.0], "lon": [7.0, 8.0]}),
    ("lat,lon,time", {}),
]


@pytest.mark.parametrize(("over", "at"), REGIONS)
def test_means_and_their_errors_are_those_in_memory(tmp_path, over, at):
    referring, held = pair(tmp_path)
    found, exact = (model.mean_over(over, std=True, **at) for model in (referring, held))
    for name in exact.data_vars:
        np.testing.assert_allclose(found[name], exact[name], rtol=1e-10)
    np.testing.assert_allclose(referring.mean_over(over, **at), exact[held.name], rtol=1e-10)


def test_slopes_of_means_and_members(tmp_path):
    referring, held = pair(tmp_path)
    slopes = {"derivative": "time", "time": [1.0, 2.5], "std": True}
    found, exact = (model.mean_over("lat,lon", **slopes) for model in (referring, held))
    for name in exact.data_vars:
        np.testing.assert_allclose(found[name], exact[name], rtol=1e-9)
    queries = [ask_region(m, "lat,lon", {"time": [1.5]}, Rules()) for m in (referring, held)]
    members = stack_members(refer(queries[0], 1e10, Threads(1)), 3, 0)
    np.testing.assert_allclose(members, stack_members(queries[1], 3, 0), rtol=1e-9)


def test_errors_of_means_over_cells_of_data_that_are_means(tmp_path):
    referring, held = pair(tmp_path, cell_means=True, poles="none")
    at = {"lon": [20.0, 77.0], "time": [2.0]}
    found, exact = (model.mean_over("lat=-20:40", std=True, **at) for model in (referring, held))
    for name in exact.data_vars:
        np.testing.assert_allclose(found[name], exact[name], rtol=1e-9)
