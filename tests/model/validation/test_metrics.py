"""Metrics are what their formulas say, and limits on them hold at their very value."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from dkrls_cli.errors import SettingError
from dkrls_cli.model.validation.metrics import (
    ERRORS,
    NAMES,
    Tally,
    coverage,
    coverage90,
    crps,
    exceeded,
    interval_score,
    scores,
)


def test_scores_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(1)
    truth, answers = rng.standard_normal((2, 5, 6))
    found, t, a = scores(truth, answers), truth.ravel(), answers.ravel()
    assert tuple(found) == NAMES
    assert found == pytest.approx(
        {
            "n": 30,
            "rmse": root_mean_squared_error(t, a),
            "mae": mean_absolute_error(t, a),
            "max_error": max(abs(t - a)),
            "normalized_max_error": max(abs(t - a)) / max(abs(t)),
            "bias": sum(a - t) / 30,
            "r2": r2_score(t, a),
        },
        rel=1e-12,
    )


def test_scores_by_hand() -> None:
    assert scores([1, 2, -4, 5], [1, 3, -4, 3]) == pytest.approx(
        {
            "n": 4,
            "rmse": math.sqrt(5 / 4),
            "mae": 0.75,
            "max_error": 2.0,
            "normalized_max_error": 0.4,
            "bias": -0.25,
            "r2": 1 - 5 / 42,
        }
    )


def test_the_largest_magnitude_may_be_negative() -> None:
    assert scores([1.0, -10.0], [3.0, -10.0])["normalized_max_error"] == 0.2


def test_cells_of_unknown_truth_do_not_count() -> None:
    assert scores([1.0, math.nan, 3.0], [1.5, 9.0, 2.0]) == scores([1.0, 3.0], [1.5, 2.0])


def test_a_missing_answer_counts_and_makes_the_metrics_nan() -> None:
    assert math.isnan(scores([1.0, 2.0], [1.0, math.nan])["rmse"])


def test_metrics_without_a_value_are_nan() -> None:
    nothing = scores([math.nan], [1.0])
    assert tuple(nothing) == NAMES
    assert nothing.pop("n") == 0
    assert all(math.isnan(value) for value in nothing.values())
    assert math.isnan(scores([2.0, 2.0], [2.0, 3.0])["r2"])
    assert math.isnan(scores([0.0, 0.0], [1.0, 0.0])["normalized_max_error"])


def test_coverage_is_the_share_within_the_band_of_nine_tenths() -> None:
    edge = norm.ppf(0.95)
    truth = np.zeros(5)
    answers = np.array([0.99, 1.01, -0.99, -1.01, 0.0]) * edge * 2.0
    assert coverage90(truth, answers, np.full(5, 4.0)) == pytest.approx(3 / 5)
    assert coverage90(truth, answers, np.full(5, 4.2)) == 1.0


def test_an_answer_on_the_edge_of_the_band_is_covered() -> None:
    from dkrls_cli.cascade.errorbars.bars import Z90

    assert coverage90([0.0], [Z90], [1.0]) == 1.0


def test_coverage_leaves_out_cells_without_band_or_truth() -> None:
    assert coverage90([0.0, 0.0, math.nan], [9.0, 0.0, 0.0], [0.0, 1.0, 1.0]) == 1.0
    assert math.isnan(coverage90([1.0], [1.0], [0.0]))


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_coverage_at_a_level_is_the_share_in_the_interval_of_scipy(level: float) -> None:
    truth, answers, variance = drawn_answers(500)
    low, high = norm.interval(level, answers, np.sqrt(variance))
    expected = np.mean((low <= truth) & (truth <= high))
    assert coverage(truth, answers, variance, level) == expected
    assert 0.2 < expected < 1
    if level == 0.9:
        assert coverage90(truth, answers, variance) == expected


def test_coverage_at_a_level_leaves_out_the_same_cells() -> None:
    assert coverage([0.0, 0.0, math.nan], [9.0, 0.0, 0.0], [0.0, 1.0, 1.0], 0.95) == 1.0
    assert math.isnan(coverage([1.0], [1.0], [0.0], 0.95))
    assert coverage([0.0], [norm.ppf(0.975)], [1.0], 0.95) == 1.0


def drawn_answers(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """True values, answers that miss them, and variances of several sizes."""
    rng = np.random.default_rng(7)
    truth = rng.normal(3.0, 2.0, count)
    variance = rng.uniform(0.05, 4.0, count)
    return truth, truth + rng.standard_normal(count), variance


def integrated_crps(truth: float, mean: float, variance: float) -> float:
    """The score by its definition: an integral on both sides of the truth."""
    normal = norm(mean, math.sqrt(variance))
    below, _ = quad(lambda x: normal.cdf(x) ** 2, -40.0, truth, epsabs=1e-11, limit=200)
    above, _ = quad(lambda x: normal.sf(x) ** 2, truth, 40.0, epsabs=1e-11, limit=200)
    return below + above


def test_crps_is_the_integral_of_its_definition() -> None:
    cells = drawn_answers(25)
    expected = [integrated_crps(*map(float, cell)) for cell in zip(*cells, strict=True)]
    for cell, value in zip(zip(*cells, strict=True), expected, strict=True):
        assert crps(*([number] for number in cell)) == pytest.approx(value, abs=1e-9)
    assert crps(*cells) == pytest.approx(np.mean(expected), abs=1e-9)


def test_crps_of_sharp_answers_is_the_absolute_error() -> None:
    truth, answers = [1.0, 2.0, 5.0], [1.5, 0.0, 5.0]
    assert crps(truth, answers, np.zeros(3)) == scores(truth, answers)["mae"]
    assert crps(truth, answers, np.full(3, 1e-16)) == pytest.approx(2.5 / 3, abs=1e-7)


def test_interval_scores_by_their_definition() -> None:
    truth, answers, variance = drawn_answers(200)
    for level in (0.5, 0.95):
        total = 0.0
        for t, a, v in zip(truth, answers, variance, strict=True):
            low, high = norm.interval(level, a, math.sqrt(v))
            total += high - low
            total += 2 / (1 - level) * (low - t) if t < low else 0.0
            total += 2 / (1 - level) * (t - high) if t > high else 0.0
        assert interval_score(truth, answers, variance, level) == pytest.approx(total / 200)


def test_scores_of_distributions_count_known_cells_and_need_every_answer() -> None:
    def both(truth: list[float], answers: list[float], variance: list[float]) -> list[float]:
        return [crps(truth, answers, variance), interval_score(truth, answers, variance, 0.95)]

    nan = math.nan
    assert both([1.0, nan], [2.0, 9.0], [1.0, nan]) == both([1.0], [2.0], [1.0])
    assert all(map(math.isnan, both([nan], [1.0], [1.0])))
    assert all(map(math.isnan, both([1.0, 2.0], [1.0, nan], [1.0, 1.0])))
    assert all(map(math.isnan, both([1.0, 2.0], [1.0, 2.0], [1.0, nan])))


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0, -0.5, math.nan])
def test_a_level_is_a_probability(level: float) -> None:
    for metric in (coverage, interval_score):
        with pytest.raises(SettingError, match=f"Invalid level {level:g}"):
            metric([0.0], [0.0], [1.0], level)


def test_a_metric_is_above_its_limit_only_beyond_it() -> None:
    metrics = {"rmse": 0.5, "mae": 0.3, "bias": -0.2, "max_error": math.nan}
    assert exceeded(metrics, {"rmse": 0.5, "mae": 0.3, "bias": 0.2}) == []
    assert exceeded(metrics, {"mae": 0.29, "rmse": 0.6, "bias": 0.19}) == ["mae", "bias"]
    assert exceeded(metrics, {"max_error": math.inf}) == ["max_error"]
    assert exceeded(metrics, {}) == []


@pytest.mark.parametrize("name", ["r2", "n", "coverage90", "speed"])
def test_only_errors_have_limits(name: str) -> None:
    with pytest.raises(SettingError, match=f"'{name}' is not a metric.*{ERRORS[-1]}"):
        exceeded({name: 1.0}, {name: 2.0})


@given(st.integers(0, 2**32 - 1))
def test_errors_shrink_with_the_distance_from_the_truth(seed: int) -> None:
    truth, noise = np.random.default_rng(seed).standard_normal((2, 12))
    near, far = scores(truth, truth + 0.1 * noise), scores(truth, truth + noise)
    assert all(abs(near[name]) <= abs(far[name]) for name in ERRORS)
    assert near["max_error"] >= near["rmse"] >= near["mae"] >= abs(near["bias"])


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.floats(-1e3, 1e3))
def test_sums_of_blocks_are_those_of_all_cells(seed: int, blocks: int, level: float) -> None:
    rng = np.random.default_rng(seed)
    truth, answers = level + rng.standard_normal((2, 60))
    truth[rng.random(60) < 0.2] = np.nan
    variance = rng.choice([0.0, 0.5, 2.0], 60)
    cuts = np.sort(rng.integers(0, 61, blocks - 1))
    parts = zip(*(np.split(one, cuts) for one in (truth, answers, variance)), strict=True)
    tally = sum((Tally.of(*part) for part in parts), Tally())
    assert tally.scores == pytest.approx(scores(truth, answers), rel=1e-10, nan_ok=True)
    assert tally.coverage90 == pytest.approx(coverage90(truth, answers, variance), rel=1e-12)


def test_sums_of_no_cells_and_of_a_constant_have_no_value() -> None:
    nothing = Tally() + Tally.of([math.nan], [1.0], [1.0])
    assert nothing.scores["n"] == 0
    assert math.isnan(nothing.scores["rmse"])
    assert math.isnan(nothing.coverage90)
    same = sum((Tally.of([0.1] * size, [0.2] * size) for size in (3, 7, 10)), Tally())
    assert math.isnan(same.scores["r2"])
    assert same.scores["n"] == 20


def test_an_answer_that_is_missing_shows_in_the_sums() -> None:
    found = (Tally.of([1.0], [math.nan]) + Tally.of([2.0], [2.0])).scores
    assert all(math.isnan(found[name]) for name in ("rmse", "mae", "max_error", "bias"))
    found = (Tally.of([2.0], [2.0]) + Tally.of([1.0], [math.nan])).scores
    assert math.isnan(found["max_error"])
