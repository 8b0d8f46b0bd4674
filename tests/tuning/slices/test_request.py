"""What is asked for a level: what is open, the segments it is seen through, and their blocks."""

import numpy as np
import pytest
from levels_left_out import request_of

from dkrls_cli.cascade.kernels import FAMILIES
from dkrls_cli.tuning.slices.segments import CopiedSegment
from dkrls_cli.tuning.spectra import SpectrumCache

X = np.geomspace(1.0, 100.0, 12)


@pytest.mark.parametrize(
    "given",
    [
        {"family": "gaussian"},
        {"sigma": 1.0},
        {"ridge": 0.0},
        {"period": 200.0},
        {"joint": True},
        {"copies": np.full(12, -1)},
    ],
)
def test_a_level_is_open_if_nothing_of_it_is_given(given):
    assert request_of(X, X[:, None], cycles=[5.0], folds=3).is_open
    assert not request_of(X, X[:, None], **given).is_open


def test_all_families_are_tried_or_the_one_that_is_given():
    assert request_of(X, X[:, None]).families == list(FAMILIES)
    assert request_of(X, X[:, None], family="matern12").families == ["matern12"]


def test_warped_coordinates_have_no_cycles_and_are_made_once():
    request = request_of(X, X[:, None], cycles=[5.0])
    warped = request.warped("log")
    np.testing.assert_allclose(warped.coordinates, np.log(X))
    assert warped.cycles == ()
    assert request.warped("log") is warped
    assert request.warped(None) is request


@pytest.mark.parametrize(
    ("size", "folds", "blocks", "small"),
    [(320, None, None, False), (160, 50, 50, True), (320, 2, 2, False), (320, 20, 4, False),
     (320, 21, 4, True), (320, 40, 8, True)],
)  # fmt: skip
def test_blocks_of_segments_are_as_large_as_those_of_the_level(size, folds, blocks, small):
    x = np.arange(float(size))
    request = request_of(x, x[:, None], folds=folds)
    assert (request.segment_folds, request.has_small_blocks) == (blocks, small)


def test_cycles_fit_twice():
    assert request_of(X, X[:, None], cycles=[4.0, 5.0, 5.1]).cycles_within(10.0) == [4.0, 5.0]


def test_copies_are_found_again_among_rising_samples():
    x = np.array([3.0, 1.0, 2.0, 0.0])
    request = request_of(x, x[:, None], copies=np.array([1, -1, -1, 2]))
    assert request.rising_copies.tolist() == [2, -1, -1, 1]
    (segment,) = request.segments(3, SpectrumCache())
    assert isinstance(segment, CopiedSegment)
    assert segment.slices == 2
