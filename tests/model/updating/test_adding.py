"""Models of the same slices with other settings."""

from dataclasses import replace

import numpy as np
import pytest
from growing_grids import JOINT, field, fitted, grid_of, slices, small

from dkrls_cli import Kernel
from dkrls_cli.gaps.bars import GapBars
from dkrls_cli.model.fit import retune
from dkrls_cli.model.updating.adding import change_settings


@pytest.mark.parametrize("how", [{}, JOINT], ids=["level", "joint"])
def test_retuning_changes_the_last_level_only(how):
    array = grid_of(field())
    model = fitted(array, **how)
    other = retune(model)
    assert other.levels[:2] == model.levels[:2]
    assert other.levels[2] != model.levels[2]
    assert other.cascade.mean == model.cascade.mean
    assert other.hierarchy == model.hierarchy


@pytest.mark.parametrize("joint", [False, True], ids=["level", "joint"])
@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
def test_other_settings_make_the_model_of_a_fit_with_them(joint, gaps):
    start = small(range(6), joint)
    model = start.update(*slices(range(6, 12), gaps))
    levels = [replace(v, kernel=Kernel("matern12", 2.0)) for v in model.cascade.levels]
    ridge = 0.5 if joint else None
    other = change_settings(model, levels, ridge, model.bars, ["a note"])
    assert other.levels == tuple(levels)
    assert other.joint_ridge == ridge
    assert other.axes[1].numbers.tolist() == list(range(12))
    first = change_settings(start, levels, ridge, start.bars, [])
    again = first.update(*slices(range(6, 12), gaps))
    at = {"x": [0.5], "t": [3.3, 12.4]}
    np.testing.assert_allclose(
        other.predict(**at, extrapolate=True), again.predict(**at, extrapolate=True), rtol=1e-7
    )
    np.testing.assert_allclose(other.predict(), again.predict(), rtol=1e-6)
    if gaps:
        assert np.array_equal(other.unobserved, model.unobserved)
    else:
        assert other.origin["notes"] == ["a note"]
    assert other.origin["slices_added"] == 6


def test_bars_of_gaps_get_the_width_of_the_new_settings():
    model = small(range(6), joint=True).update(*slices(range(6, 12), gaps=True))
    known = model.known_bars
    assert isinstance(known, GapBars)
    wider = GapBars(np.zeros(1, bool), scale=7.0, power=0.4, error=0.9)
    other = change_settings(model, model.cascade.levels, 0.5, wider, [])
    assert (other.bars.scale, other.bars.power, other.bars.error) == (7.0, 0.4, 0.9)
    assert np.array_equal(other.bars.unobserved, known.unobserved)
    before, after = known.distance_in(model.cascade), other.bars.distance_in(other.cascade)
    assert not np.allclose(after, before)  # another ridge
