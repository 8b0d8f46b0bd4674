"""Tolerances of models that are made part by part."""

import numpy as np
import pytest
from stored_grids import stored, waves

from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.storage.comparison import half_way
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.model.chunked.compact import fit_compact
from dkrls_cli.model.chunked.promise import largest_gain
from dkrls_cli.model.fit import fit
from dkrls_cli.model.settings import Settings

LEVELS = (
    Level("lat", Kernel("gaussian", 8.0), 1e-4),
    Level("lon", Kernel("gaussian", 12.0), 1e-4),
    Level("time", Kernel("gaussian", 0.4), 1e-4),
)


def between(model):
    """Return every coordinate of a model, and those half-way between."""
    return [
        np.concatenate([c, half_way(c, level.kernel.period)])
        for c, level in zip(model.cascade.coordinates, model.cascade.levels, strict=True)
    ]


@pytest.mark.parametrize("tolerance", ["0.04 K", 0.05])
def test_answers_are_as_close_to_those_of_the_full_model_as_promised(tolerance):
    data = waves(noise=1e-3)
    full = fit(data, levels=LEVELS)
    small = fit_compact(stored(data, (7, 5, 8)), Settings(levels=LEVELS, tolerance=tolerance))
    limit = 0.04 if tolerance == "0.04 K" else 0.05 * float(data.astype("float64").std())
    told = small.origin["tolerance"]
    assert told["limit"] == pytest.approx(limit, rel=1e-6)
    asked = between(full)
    differences = np.abs(small.cascade.predict(asked) - full.cascade.predict(asked))
    assert differences.max() <= told["max"] <= limit
    assert told["rms"] >= np.sqrt((differences**2).mean())
    assert told["bytes"] < 0.3 * told["full_bytes"] == 0.3 * 8 * data.size


def test_noise_that_kernels_do_not_hold_is_no_part_of_a_promise():
    data = waves(noise=0.3)
    with pytest.raises(InputError, match=r"up to [\d.]+ of the data is noise to the kernels"):
        fit_compact(stored(data, (7, 5, 8)), Settings(levels=LEVELS, tolerance="0.1 K"))
    with pytest.raises(SettingError, match="in 'm', and 'f' has the units 'K'"):
        fit_compact(stored(data), Settings(levels=LEVELS, tolerance="0.1 m"))


def test_constant_data_has_no_tolerance_to_use_up():
    data = waves() * 0 + 3.0
    small = fit_compact(stored(data, (7, 5, 8)), Settings(levels=LEVELS, tolerance=0.1))
    np.testing.assert_allclose(small.predict(), 3.0, atol=1e-9)


def test_rows_of_a_level_tell_how_much_a_difference_may_grow():
    x = np.arange(12.0)
    spline = Level("x", Kernel("linear"), 0.0)
    assert largest_gain([spline], [x]) == pytest.approx(1.0)
    smooth = Level("x", Kernel("gaussian", 3.0), 1e-9)
    assert 1.2 < largest_gain([smooth], [x]) < 30
    assert largest_gain([smooth, smooth], [x, x]) == pytest.approx(largest_gain([smooth], [x]) ** 2)
    long = Level("x", Kernel("matern32", 5.0), 1e-3)
    assert 1.0 < largest_gain([long], [np.arange(1500.0)]) < 2.0
