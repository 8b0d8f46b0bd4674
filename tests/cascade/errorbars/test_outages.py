"""Error bars in outages: against refits without blocks of slices, and on fields that are drawn."""

import numpy as np
import pytest

from dkrls_cli import fit as fit_model
from dkrls_cli.cascade.calibration.local import LocalScale, student_factor
from dkrls_cli.cascade.errorbars.bars import Z90
from dkrls_cli.cascade.errorbars.levels import LevelBars
from dkrls_cli.cascade.errorbars.outages import Line, with_outages
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level
from dkrls_cli.cascade.splines.pieces import Piece
from dkrls_cli.model.validation.metrics import coverage90

ROUGH = Kernel("matern12", 4.0)
X = np.delete(np.arange(60.0), np.s_[31:37])  # nothing between 30 and 37
RUNS = np.arange(40.0)


def drawn(kernel, x, count=RUNS.size):
    root = np.linalg.cholesky(gram(kernel, x, x) + 1e-9 * np.eye(x.size))
    return root @ np.random.default_rng(0).standard_normal((x.size, count))


def trained(x, data, kernel=ROUGH, ridge=1e-3):
    levels = [Level("x", kernel, ridge), Level("run", Kernel("matern12", 1e-3), 1e-9)]
    return fit_cascade(data, [x, RUNS[: data.shape[1]]], levels)


def plain_bars(local=()):
    return LevelBars(np.ones(2), np.array([1.5, 1.0]), np.full((2, 2), 0.5), local)


def factor_of_refits(x, data, blocks, deep=slice(1, -1), **level):
    """Return the factor with which the band holds the cells deep in blocks that are left out."""
    ratios = []
    for block in blocks:
        other = trained(np.delete(x, block), np.delete(data, block, 0), **level)
        queries = [x[block][deep], RUNS[: data.shape[1]]]
        missed = other.predict(queries) - data[block][deep]
        ratios.append(missed**2 / plain_bars().variance_blocks(other, queries)(np.s_[:, :]))
    return np.quantile(np.array(ratios), 0.9) / Z90**2 * student_factor(len(blocks))


def test_the_factor_in_an_outage_is_that_of_refits_without_blocks():
    data = drawn(Kernel("matern32", 6.0), X)
    blocks = Line.of(X, ROUGH).place_blocks(8.0)  # 7 wide, in steps of the root of two
    known = with_outages(plain_bars(), trained(X, data), 0).local[0]
    assert known.places.tolist() == [30.0, 31.0, 36.0, 37.0]
    expected = factor_of_refits(X, data, blocks)
    np.testing.assert_allclose(known.factors, [1.0, expected, expected, 1.0], rtol=1e-6)
    assert abs(expected - 1.0) > 0.1


def test_blocks_are_left_out_of_one_spectrum_unless_it_lacks_directions(monkeypatch):
    refits = []

    def refit(*arguments):
        refits.append(arguments)
        return fit_cascade(*arguments)

    monkeypatch.setattr("dkrls_cli.cascade.errorbars.outages.fit_cascade", refit)
    data = drawn(Kernel("matern32", 6.0), X)
    with_outages(plain_bars(), trained(X[::-1], data[::-1]), 0)
    assert not refits
    smooth = trained(X, data, kernel=Kernel("gaussian", 30.0), ridge=1e-15)
    known = with_outages(plain_bars(), smooth, 0).local[0]
    assert len(refits) == 8
    assert np.isfinite(known.factors).all()


def test_blocks_lie_between_slices_so_far_apart_and_in_no_outage():
    line = Line.of(X, ROUGH)
    blocks = line.place_blocks(6.0)
    assert len(blocks) == 8
    for block in blocks:
        assert X[block.stop] - X[block.start - 1] == 6.0
        assert block.start >= 4
        assert block.stop <= X.size - 4
        assert X[block.stop] <= 30 or X[block.start - 1] >= 37
        np.testing.assert_array_equal(line.depths(block), [1.0, 2.0, 3.0, 2.0, 1.0])


def test_where_no_data_is_so_wide_blocks_are_narrower():
    widest = Line.of(X, ROUGH).place_blocks(40.0)
    assert {float(X[b.stop] - X[b.start - 1]) for b in widest} == {20.0}  # 40 * 0.7^2, rounded up
    assert Line.of(X, ROUGH).place_blocks(3.0) == []
    assert Line.of(np.array([0.0, 1.0, 9.0]), ROUGH).place_blocks(8.0) == []


@pytest.mark.parametrize("rounding", [-1e-12, 1e-12])
def test_a_gap_three_times_as_wide_as_others_is_no_outage(rounding):
    x = np.r_[np.arange(10.0), 12.0 + rounding + np.arange(10.0)]
    assert Line.of(x, ROUGH).find_outages() == []
    wide = np.r_[np.arange(10.0), 12.01 + np.arange(10.0)]
    assert Line.of(wide, ROUGH).find_outages() == [9]
    bars, model = plain_bars(), trained(x, drawn(ROUGH, x))
    assert with_outages(bars, model, 0) is bars


def test_an_outage_across_the_seam_of_a_circle_is_one_like_others():
    ring = np.arange(0.0, 360.0, 6.0)
    waves = np.sin(np.deg2rad(np.outer(ring, [1, 2, 5, 9])))
    data = waves + 0.1 * drawn(ROUGH, ring, 4)
    kernel = Kernel("matern32", 30.0, period=360.0)
    found = []
    for lost in (np.s_[25:31], np.r_[57:60, 0:3]):  # 150 to 180, and 342 to 12
        kept = np.delete(np.arange(60), lost)
        turned = trained(ring[kept], np.roll(data, np.arange(60)[lost][0] - 25, 0)[kept], kernel)
        scale = with_outages(plain_bars(), turned, 0).local[0]
        found.append((scale, np.array([144.0, 165.0, 186.0]) + ring[np.arange(60)[lost][0]] - 150))
    factors = [scale.at(places % 360, 360.0) for scale, places in found]
    np.testing.assert_allclose(factors[0], factors[1], rtol=1e-6)
    np.testing.assert_allclose(factors[0][[0, 2]], 1.0, rtol=1e-9)
    assert factors[0][1] != pytest.approx(1.0, rel=0.1)


def test_an_outage_on_a_warped_axis_is_one_in_its_logarithm():
    x = np.exp2(np.arange(-10.0, 10.0))  # every gap is twice as wide as that before
    kernel = Kernel("matern32", 2.0, warp="log")
    bars, data = plain_bars(), drawn(ROUGH, x)
    assert with_outages(bars, trained(x, data, kernel), 0) is bars
    kept = np.delete(np.arange(20), np.s_[12:16])
    scale = with_outages(bars, trained(x[kept], data[kept], kernel), 0).local[0]
    assert scale.places[[0, -1]].tolist() == [2.0, 64.0]


def test_an_outage_is_judged_by_the_spline_that_answers_in_it():
    data = drawn(Kernel("matern32", 2.0), X)
    pieces = (Piece("cubic", 27.0, 28.0), Piece("linear", 40.0, 41.0))
    factors = {
        name: with_outages(plain_bars(), trained(X, data, kernel, 0.0), 0).local[0].factors[1]
        for name, kernel in {
            "linear": Kernel("linear", 4.0, errors="matern12"),
            "cubic": Kernel("cubic", 4.0, errors="matern12"),
            "pieces": Kernel("linear", 4.0, errors="matern12", pieces=pieces),
            "over": Kernel("linear", 4.0, errors="matern12", pieces=(Piece("cubic", 30.0, 37.0),)),
        }.items()
    }
    assert factors["pieces"] == factors["over"] == factors["cubic"]
    assert factors["cubic"] > 1.5 * factors["linear"]


def test_a_local_scale_goes_on_in_the_outage():
    model = trained(X, drawn(Kernel("matern32", 6.0), X))
    local = LocalScale(np.array([0.0, 30.0, 37.0, 59.0]), np.array([1.0, 2.0, 4.0, 8.0]))
    alone = with_outages(plain_bars(), model, 0).local[0]
    both = with_outages(plain_bars((local, None)), model, 0).local
    assert both[1] is None
    np.testing.assert_allclose(both[0].at(local.places), local.factors, rtol=1e-12)
    middle = np.array([33.5])
    assert both[0].at(middle) < local.at(middle) * alone.at(middle)  # blocks were told apart, too


def test_the_band_holds_in_outages_where_single_slices_say_little():
    x = np.arange(240.0)
    truth = drawn(Kernel("matern12", 12.0), x, 4)
    lost = np.r_[40:60, 110:125, 170:200]
    kept = np.delete(np.arange(240), lost)
    model = fit_model(truth[kept], {"x": x[kept], "run": RUNS[:4]})
    answers, spread = model.predict(x=x[lost]), model.std(x=x[lost]) ** 2
    assert 0.83 < coverage90(truth[lost], answers, spread) < 0.97
