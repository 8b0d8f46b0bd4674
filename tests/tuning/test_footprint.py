"""What a fit takes: every part by hand, and the whole against the peaks of fits."""

import math
import tracemalloc

import numpy as np
import pytest

from dkrls_cli.cascade.factors.quasiseparable import AT_ONCE
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.spectrum import decompose
from dkrls_cli.model.fit import fit
from dkrls_cli.tuning import footprint as module
from dkrls_cli.tuning import masks, spectra
from dkrls_cli.tuning.footprint import (
    PROCESS,
    Machine,
    answer_memory,
    footprint,
    holdout_memory,
    kept_memory,
    level_memory,
    solve_memory,
    survey_memory,
)
from dkrls_cli.tuning.slices import fibres

LARGE = (10, 1000, 1000, 100)
"""1e9 cells: factors and fibres are nothing beside them."""


def gigabytes(**settings):
    """Return the parts of the large grid that count, in gigabytes."""
    parts = footprint(LARGE, **settings).parts
    return {name: round(size / 1e9, 1) for name, size in parts.items() if size > 0.5e9}


def test_the_memory_is_the_sum_of_the_parts():
    found = footprint((30, 20), machine=Machine(1e8, 1e8))
    assert found.cells == 600
    assert found.memory == sum(found.parts.values()) > 1e8
    assert all(found.parts.values())  # what takes nothing is not named


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({"dtype": "float64", "joint": True}, {"data": 8.0, "error bars": 32.0}),
        ({"dtype": "float64"}, {"data": 8.0, "search": 8.0}),  # ten coordinates: all midpoints
        ({"dtype": "float32"}, {"data": 4.0, "search": 8.0}),
        ({"dtype": "float32", "loaded": True}, {"search": 8.0}),
        ({"dtype": "int16", "joint": True, "storage": "float32"}, {"data": 8.0, "model": 4.0}
         | {"error bars": 32.0}),
        ({"dtype": "float32", "joint": True, "storage": "float32"}, {"data": 4.0}
         | {"error bars": 32.0}),
        ({"dtype": "float32", "joint": True, "compact": True}, {"data": 4.0, "model": 2.0}
         | {"error bars": 32.0}),
        ({"dtype": "float64", "gaps": True}, {"data": 8.0, "missing cells": 72.0}),
        (
            {"dtype": "float32", "gaps": True, "joint": True},
            {"data": 4.0, "data as float64": 8.0, "missing cells": 72.0},
        ),
        ({"answers": 10**11}, {"data": 8.0, "answers": 100.0}),
        ({"answers": 10**11, "storage": "float32"}, {"data": 8.0, "model": 4.0, "answers": 100.0}),
        ({"answers": 10**11, "joint": True}, {"data": 8.0, "joint ridge": 16.0, "answers": 100.0}),
        ({"answers": 10**11, "gaps": True}, {"model": 8.0, "joint ridge": 16.0, "answers": 100.0}),
        ({"others": 10**9, "joint": True}, {"held besides": 1.0, "data": 8.0, "error bars": 32.0}),
    ],
)  # fmt: skip
def test_parts_of_a_large_grid(settings, parts):
    assert gigabytes(**settings) == parts


def test_reading_takes_a_part_besides_and_no_second_array(monkeypatch):
    monkeypatch.setattr(module, "_search", lambda shape: 0)
    assert footprint((1000,) * 3).parts["data"] == 8 * 10**9
    assert footprint((1000,) * 3).parts["reading"] == 24 * 2**20
    assert footprint((100,) * 3).parts["reading"] == 24 * 10**6
    assert footprint((1000,) * 3, loaded=True).parts.keys() == {"levels", "reading"}


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({"dtype": "float32"}, {"data": 4.0, "saving": 3.25}),
        ({"dtype": "float64"}, {"data": 8.0, "saving": 7.25}),
        ({"dtype": "int16", "storage": "float32"}, {"data": 8.0, "model": 4.0, "saving": 3.25}),
    ],
)
def test_saving_takes_all_bytes_but_those_of_the_exponents(settings, parts):
    """With few midpoints, as there are of long levels."""
    found = footprint((1000,) * 3, saved=True, **settings).parts
    large = {name: size / 1e9 for name, size in found.items() if size > 0.5e9}
    assert large == parts
    assert "saving" not in footprint((1000,) * 3, **settings).parts
    assert "saving" not in footprint((1000,) * 3, saved=True, compact=True, **settings).parts


def test_the_choice_of_a_joint_ridge_takes_three_arrays(monkeypatch):
    """The data less its mean, and two on the way to the eigenbases; error bars take more."""
    assert footprint((300,) * 3, joint=True).parts["error bars"] == 4 * 8 * 300**3
    monkeypatch.setattr(module, "_model", lambda *given: -(10**12))
    assert footprint((300,) * 3, joint=True).parts["joint ridge"] == 3 * 8 * 300**3


def test_levels_are_held_and_made_one_after_the_other(monkeypatch):
    assert level_memory(100) == (80_000, 320_000)
    found = footprint((100, 50, 80))
    assert found.parts["levels"] == 8 * (100**2 + 50**2 + 80**2) + 4 * 8 * 100**2
    monkeypatch.setattr(module, "level_memory", lambda size: (size, 2 * size))
    assert footprint((100, 50, 80)).parts["levels"] == 230 + 200
    assert kept_memory((100, 50)) == 8 * 5000 + 150


def test_making_the_factors_of_a_level_takes_no_more():
    """Numpy's own arrays; what LAPACK works in is not traced."""
    nodes = np.arange(400.0)
    tracemalloc.start()
    decompose(gram(Kernel("gaussian", 3.0), nodes, nodes))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(level_memory(400)) / 2 <= peak <= sum(level_memory(400))


def test_the_search_holds_midpoints_fibres_and_kernels():
    kernels = 60 * (64**2 + 120**2)  # of a segment, and of a level seen whole
    assert module._search((200, 120)) == 8 * (200 * 24 + 2 * 200 * 120 + kernels)


def test_one_dimension_has_no_midpoints():
    assert module._search((100,)) == 8 * (2 * 100 + 60 * 100**2)


def test_fibres_and_kernels_of_the_search_have_an_end():
    wide = module._search((100, 2, 10**6)) - 8 * 100 * 2 * 10**6  # less the midpoints
    assert wide == 8 * (2 * fibres.NUMBERS + 60 * (100**2 + 2**2 + 64**2))
    many = module._search((160,) * 16) - 8 * (160**15 * 24 + 2 * 160 * fibres.FIBRES)
    assert many == spectra.HELD


def test_the_search_through_gaps_holds_kernels_of_windows_and_answers():
    small, large = (100, 60), (1000, 900)
    kernels = 26 * 8 * (100**2 + 60**2)
    smooth = {"smooth directions": 20 * 500**2}
    assert module._gap_steps(small)[0] == {"search": kernels + 60 * 8 * 6000} | smooth
    assert module._gap_steps(small)[1] == {"search": kernels, "missing cells": 72 * 6000} | smooth
    sides = masks.window_sides(large, 3 * masks.WINDOW)
    kernels = 26 * 8 * 3 * sum(side**2 for side in sides)
    assert module._gap_steps(large)[0]["search"] == kernels + 60 * 8 * 3 * masks.WHOLE
    sides = masks.window_sides((9, 100, 100), masks.WINDOW)
    kernels = 26 * 8 * 3 * sum(side**2 for side in sides)
    assert module._gap_steps((9, 100, 100))[0]["search"] == kernels + 60 * 8 * masks.WHOLE
    assert module._gap_steps(large)[0]["smooth directions"] == 20 * 3000**2  # no more than that
    assert module._gap_steps((12, 5000))[0]["smooth directions"] == 0  # of a long axis none
    assert module._gap_steps((9, 100, 100))[0]["smooth directions"] == 10 * 3000**2
    assert module._gap_steps((12, 5000))[1]["search"] == spectra.HELD


def test_the_process_is_what_it_holds_and_what_it_will_load():
    assert Machine(1e8, 1e8).process == 108_000_000
    assert Machine().process == PROCESS
    assert footprint((5, 5), machine=Machine(1e8, 1e8)).parts["process"] == 108_000_000
    assert footprint((5, 5), machine=Machine()).parts["process"] == PROCESS
    assert "process" not in footprint((5, 5)).parts


def test_a_peak_while_the_file_was_opened_counts():
    assert Machine(1e8, 3e8).opening == 192_000_000
    assert Machine(1e8, 1.01e8).opening == Machine().opening == 0
    assert (
        footprint((5, 5), machine=Machine(1e8, 3e8)).memory
        == 3e8 + footprint((5, 5)).parts["levels"]
    )


def test_a_model_keeps_its_numbers_and_the_factors_of_its_levels():
    assert kept_memory((10, 20)) == 8 * 200 + 8 * (100 + 400)
    assert kept_memory((10, 20), "float32") == 4 * 200 + 8 * (100 + 400)
    assert kept_memory((10, 20), dtype="float32") == 4 * 200 + 8 * (100 + 400)
    assert kept_memory((10, 20), dtype="int16") == 8 * 200 + 8 * (100 + 400)


def test_a_hold_out_keeps_the_whole_grid_and_the_model_before():
    model = kept_memory((8, 16), dtype="float32")
    assert holdout_memory((10, 20), (8, 16), "float32") == 4 * 200 + model
    assert holdout_memory((9,), (8,), "i2", "f4") == 8 * 9 + kept_memory((8,), "f4")


def test_answers_are_held_as_they_are_and_as_they_are_written():
    assert answer_memory(1000) == 20_000
    assert answer_memory(1000, std=True) == 32_000


def test_a_survey_takes_more_for_levels_that_are_chosen_and_solves_of_long_ones():
    given, chosen = (survey_memory((100, 200), chosen=one) for one in (False, True))
    levels = 8 * (100**2 + 200**2) + 32 * 200**2
    assert chosen - given == pytest.approx(2.6 * levels, abs=1)
    assert given == pytest.approx(24e6 + 1.4 * levels + 12 * 20_000, abs=1)
    assert survey_memory((100, 200), chosen=False, added=500) - given == 12 * 500
    long = survey_memory((3000, 64), chosen=False)
    solve = 8 * 7 * 3000 * 64  # fibres, weights, and five arrays of a part
    levels = 8 * 3000 * 32 + 5 * 8 * 64**2
    assert long == pytest.approx(24e6 + 1.4 * levels + solve, abs=1)


def test_operations_are_those_of_the_eigenvectors_and_of_the_answers():
    assert 9e9 < footprint((1000,)).operations < 14e9
    assert footprint((100,) * 4).operations == pytest.approx(0.5 * 1e10, rel=0.05)


# ---- against what numpy allocates


@pytest.mark.parametrize("noise", ["level", "joint"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(60, 60), (90, 80, 40), (30, 20, 10, 12)])
def test_no_fit_allocates_much_more_or_less(shape, dtype, noise):
    """Without the process, and with settings given: only kernels that are tried are missing."""
    given = {"sigma": 3.0, "kernel": "gaussian"} | ({"ridge": 1e-3} if noise == "level" else {})
    tracemalloc.start()
    values = np.random.default_rng(0).random(shape, dtype=np.dtype(dtype).type)
    fit(values, noise=noise, **given)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    found = footprint(shape, dtype, joint=noise == "joint")
    tried = 16 * 60 * sum(m * m for m in shape)
    assert found.cells == math.prod(shape)
    assert found.memory - tried <= 1.5 * peak
    assert peak <= 1.5 * found.memory


def test_a_long_level_takes_blocks_of_64_and_arrays_for_its_solves():
    assert level_memory(1025) == (8 * 1025 * 32, 0)
    assert module._solve_long((1024, 1024)) == 0
    assert module._solve_long((2000, 3)) == 8 * 7 * 6000
    assert module._solve_long((10**6, 50)) == 8 * (2 * 5 * 10**7 + 5 * AT_ONCE)
    assert footprint((2 * 10**5, 30)).parts["long levels"] == module._solve_long((2 * 10**5, 30))
    assert module._missing_cells(600, long=True) == 172 * 600
    cubes = 12.0 * (100**3 + 3**3)
    assert footprint((100, 3)).operations == 0.5 * 300 * 100 + cubes
    assert footprint((2000, 3)).operations == 4.0 * 64 * (2000 * 64 + 6000) + 1.5 * 6000 + 12 * 27


def test_a_sphere_takes_its_matrices_where_cells_are_missing():
    plain, sphere = (footprint((40, 80), gaps=True, sphere=size) for size in (0, 10**7))
    assert sphere.memory == plain.memory + 10**7
    assert sphere.parts["sphere"] == 10**7
    assert "sphere" not in plain.parts


def test_rows_across_the_poles_take_a_copy_of_the_data():
    plain, more = (footprint((40, 80), "float32", added=size) for size in (0, 800))
    assert "across the poles" not in plain.parts
    assert more.parts["across the poles"] == 4 * 4000
    assert more.memory == plain.memory + 4 * 4000
    gaps = footprint((40, 80), "float32", gaps=True, added=800)
    assert gaps.parts["across the poles"] == 4 * 4000 + 72 * 800


def test_a_solve_with_known_settings_takes_less_than_a_choice():
    shape = (300, 40, 50)
    cells = math.prod(shape)
    found = solve_memory(shape)
    assert found == module._levels(shape) + module._coarse_space(shape) + 10 * 8 * cells
    assert solve_memory(shape, std=True) - found == 5 * 8 * cells
    assert found < footprint(shape, gaps=True).memory
    long = solve_memory((2000, 50))  # no coarse space, but neighbours that are missing as well
    assert long == module._levels((2000, 50)) + (80 + module._SWEPT) * 100_000
