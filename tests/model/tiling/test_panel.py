"""Tiles of one range of coordinates, put together."""

import numpy as np
from tiled_grids import daily, settings, source_of

from dkrls_cli.grid.grid import as_grid
from dkrls_cli.model.planning.plan import plan_fit
from dkrls_cli.model.tiling.ground import Ground
from dkrls_cli.model.tiling.layout import Context, Cut, Layout, Span
from dkrls_cli.model.tiling.panel import Panel
from dkrls_cli.model.tiling.scan import PartReader
from dkrls_cli.model.tiling.seams import Seams
from dkrls_cli.model.tiling.solving import choose_model

GIVEN = settings({"lat": 3.0, "lon": 3.0, "time": 4.0})
ALL = Context(100, 100)


def panels(inner=None):
    """Return the panels of a grid in two parts that see all of it, and the answers of the whole."""
    grid = as_grid(daily(20, 5, 6)[2:-1].drop_isel(time=[8]))
    every = [np.arange(size) for size in grid.values.shape]
    spans = {place: Span(place, 0, own.size, own) for place, own in enumerate(every)}
    none = [np.zeros(own.size, bool) for own in every]
    ground = Ground(0, 0, grid.axes, every, every, every, none, spans, None)
    plan = plan_fit(grid.axes, GIVEN, complete=False)
    others = {"bounds": None, "single": False, "accept_inexact": False, "std": False}
    model = choose_model(grid, plan, grid.axes, (0,), 5.0, **others)
    layout = Layout(Cut(0, ((0, 9), (9, 16))), inner, ALL, 0, 0, (0,))
    missing, reader = np.isnan(grid.values), PartReader(source_of(grid), 0)
    found = [
        Panel(ground, reader, model, layout, place, missing[slice(*core)], std=False)
        for place, core in enumerate(layout.outer.cores)
    ]
    for panel in found:
        panel.solve()
    return found, model.solve(grid.values, grid.axes, None).answers, missing


def test_parts_that_see_all_make_the_whole():
    for inner in (None, Cut(2, ((0, 2), (2, 5), (5, 6)))):
        (one, other), whole, missing = panels(inner)
        values = np.concatenate([one.expand()[0], other.expand()[0]])
        assert np.abs(values - whole)[missing].max() < 1e-5
        assert one.expand()[1] is None


def test_seams_are_compared_along_both_axes():
    (one, other), _, missing = panels()
    before = one.compare(Seams(), None)
    assert before.count == 0
    found = other.compare(before, one.edge)
    assert one.edge[0].tolist() == list(range(9, 16))
    assert found.count == missing[9:].sum()
    assert found.largest < 1e-3
    assert other.edge is None
    one.edge[1][...] += 10.0  # a tile that is wrong is seen
    assert not other.compare(before, one.edge).fit
    (one, other), _, missing = panels(Cut(2, ((0, 2), (2, 5), (5, 6))))
    found = other.compare(one.compare(Seams(), None), one.edge)
    inner = missing[:, :, 2:5].sum() + missing[:, :, 5].sum()
    assert found.count == missing[9:].sum() + inner
