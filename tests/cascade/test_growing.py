"""Cascades that grow: shared storage, frames that widen, and the answers of a fit."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dkrls_cli.cascade.factors import choice
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.growing import Growing, SliceStore, _store, _widen
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level

X, T = np.linspace(0, 1, 40), np.arange(16.0)
LEVELS = [
    Level("x", Kernel("matern52", 0.4), 1e-4),
    Level("t", Kernel("matern32", 5.0, constant=1.0), 1e-2),
]
SMOOTH = np.sin(3 * X[:, None] + T / 4)
NOISE = np.random.default_rng(0).standard_normal((40, 16))
QUERIES = [np.array([0.033, X[7], 0.9]), np.array([-0.5, 3.3, T[5], 16.0])]

each_kind = pytest.mark.parametrize("joint", [None, 1e-3], ids=["level", "joint"])
each_field = pytest.mark.parametrize("values", [SMOOTH, NOISE], ids=["smooth", "noise"])


def grown(values: np.ndarray, joint: float | None = None, axis: int = 1, **how) -> Growing:
    """A fit of slices at 0, 1, 2, ... that grows along t."""
    levels = [replace(v, ridge=v.ridge if joint is None else 0.0) for v in LEVELS]
    axes = [X, T[: values.shape[axis]]]
    if axis == 0:
        levels, axes = levels[::-1], axes[::-1]
    how = {"mean": 0.2, "joint_ridge": joint, **how}
    return Growing(fit_cascade(values, axes, levels, **how), axis)


def assert_same(found: Growing, expected: Growing) -> None:
    queries = QUERIES if found.axis else QUERIES[::-1]
    np.testing.assert_array_equal(found.coordinates, expected.coordinates)
    for smooth in (False, True):
        answers = expected.cascade.predict(queries, smooth=smooth)
        np.testing.assert_allclose(
            found.cascade.predict(queries, smooth=smooth), answers, atol=1e-9
        )
    np.testing.assert_allclose(found.cascade.predict(), expected.cascade.predict(), atol=1e-12)


# ---- single precision


def test_slices_that_single_precision_does_not_hold_widen_a_core_that_was_exact() -> None:
    """New slices are not rounded, also when others before them were exact."""
    old, exact = NOISE[:, :8].astype("f4"), NOISE[:, 8:12].astype("f4").astype(float)
    start = grown(old)
    assert start.cascade.core.dtype == np.float32
    more = start.append(T[8:12], exact)
    assert more.cascade.core.dtype == np.float32
    assert more.cascade.storage == np.float64
    whole = more.append(T[12:], NOISE[:, 12:])
    assert whole.cascade.core.dtype == np.float64
    np.testing.assert_array_equal(whole.cascade.predict()[:, 8:12], exact)
    np.testing.assert_array_equal(whole.cascade.predict()[:, 12:], NOISE[:, 12:])
    np.testing.assert_array_equal(more.cascade.predict()[:, :8], old)  # as it was
    expected = np.column_stack([old, exact, NOISE[:, 12:]])
    assert_same(whole, grown(expected))


def test_slices_of_a_model_in_single_precision_are_rounded() -> None:
    found = grown(NOISE[:, :8], dtype="float32").append(T[8:], NOISE[:, 8:])
    assert found.cascade.core.dtype == found.cascade.storage == np.float32


# ---- storage


def numbers(store: SliceStore) -> list[int]:
    return store.slices[:, 0].astype(int).tolist()


def rows(*values: int) -> np.ndarray:
    return np.array(values, float).reshape(-1, 1)


def test_two_stores_of_one_parent_do_not_see_each_other() -> None:
    parent = _store(rows(1, 2), room=8)
    one = parent.append(rows(3))
    other = parent.append(rows(4, 5))
    assert [numbers(store) for store in (parent, one, other)] == [[1, 2], [1, 2, 3], [1, 2, 4, 5]]
    further = one.append(rows(6))
    assert numbers(further) == [1, 2, 3, 6]
    assert numbers(one) == [1, 2, 3]
    assert further.buffer is one.buffer is parent.buffer
    assert other.buffer is not parent.buffer


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(0, 2)), max_size=30))
def test_a_store_never_changes_for_those_who_hold_it(steps: list[tuple[int, int, int]]) -> None:
    """Slices appended to any of the stores so far, and some of its first ones dropped."""
    stores, expected, count = [_store(rows(0), room=2)], [[0]], 1
    for which, more, less in steps:
        place, new = which % len(stores), list(range(count, count + more))
        gone = min(less, len(expected[place]))
        stores.append(stores[place].drop_first(gone).append(rows(*new)))
        expected.append([*expected[place][gone:], *new])
        count += more
    assert [numbers(store) for store in stores] == expected


def test_appending_one_by_one_copies_a_few_times_only() -> None:
    store, buffers = _store(rows(0), room=2), set()
    for value in range(1, 1000):
        store = store.append(rows(value))
        buffers.add(id(store.buffer.array))
        assert len(store.buffer.array) < 3 * (value + 2)
    assert numbers(store) == list(range(1000))
    assert len(buffers) <= 10


def test_a_full_buffer_is_filled_to_its_last_slice() -> None:
    parent = _store(rows(1, 2), room=4)
    full = parent.append(rows(3, 4))
    assert full.buffer is parent.buffer
    longer = full.append(rows(5))
    assert longer.buffer is not full.buffer
    assert len(longer.buffer.array) == 10
    assert numbers(full.append(rows())) == [1, 2, 3, 4]


def test_a_window_that_moves_keeps_a_small_buffer() -> None:
    store = _store(rows(0, 1, 2, 3), room=8)
    for value in range(4, 200):
        store = store.drop_first(1).append(rows(value))
        assert len(store.buffer.array) <= 10
    assert numbers(store) == [196, 197, 198, 199]


def test_slices_of_a_store_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        _store(rows(1, 2), room=4).slices[0] = 9.0


# ---- growing


@each_kind
@each_field
@pytest.mark.parametrize("axis", [0, 1])
def test_slices_appended_are_as_if_fitted(
    values: np.ndarray, joint: float | None, axis: int
) -> None:
    data = values if axis else values.T
    whole = grown(data, joint, axis)
    part = grown(data.take(range(9), axis), joint, axis)
    at_once = part.append(T[9:], data.take(range(9, 16), axis))
    assert_same(at_once, whole)
    for place in range(9, 16):
        part = part.append(T[[place]], data.take([place], axis))
    assert_same(part, whole)


@each_kind
@each_field
def test_old_slices_are_dropped_and_taken(values: np.ndarray, joint: float | None) -> None:
    whole = grown(values, joint)
    expected = Growing(
        fit_cascade(values[:, 4:], [X, T[4:]], whole.cascade.levels, joint_ridge=joint, mean=0.2),
        1,
    )
    part = grown(values[:, :10], joint)
    assert_same(part.append(T[10:], values[:, 10:], drop=4), expected)
    assert_same(part.append(T[10:], values[:, 10:]).drop_first(4), expected)
    assert_same(whole.drop_first(4), expected)
    assert_same(whole.take(np.arange(4, 16)), expected)
    everything = part.append(T[10:], values[:, 10:], drop=10)
    assert everything.coordinates.tolist() == T[10:].tolist()


@each_field
def test_slices_come_back_in_any_order(values: np.ndarray) -> None:
    places = np.array([5, 0, 15])
    whole = grown(values)
    np.testing.assert_allclose(whole.slices(places), values[:, places], atol=1e-12)
    turned = whole.take(places[::-1])
    np.testing.assert_allclose(turned.slices(np.arange(3)), values[:, places[::-1]], atol=1e-12)
    assert whole.slices(places[:0]).shape == (40, 0)
    assert whole.take(places[:0]).coordinates.size == 0


def test_older_cascades_stay_as_they_were() -> None:
    base = grown(NOISE[:, :11]).append(T[11:12], NOISE[:, 11:12])
    before = base.cascade.predict(QUERIES)
    one = base.append(T[12:13], NOISE[:, 12:13])
    other = base.append(T[13:14], NOISE[:, 13:14])
    np.testing.assert_array_equal(base.cascade.predict(QUERIES), before)
    np.testing.assert_array_equal(one.cascade.predict(), NOISE[:, :13])
    np.testing.assert_array_equal(other.cascade.predict(), NOISE[:, [*range(12), 13]])
    assert one.store is not None
    assert base.store is not None
    assert one.store.slices.buffer is base.store.slices.buffer


def test_single_precision_stays_single() -> None:
    for values in (SMOOTH, NOISE):
        model = grown(values[:, :9], dtype=np.float32).append(T[9:], values[:, 9:])
        assert model.cascade.core.dtype == np.float32
        np.testing.assert_allclose(model.cascade.predict(), values, atol=1e-5)


def test_coordinates_of_a_grown_cascade_are_read_only() -> None:
    model = grown(NOISE[:, :9]).append(T[9:], NOISE[:, 9:])
    with pytest.raises(ValueError, match="read-only"):
        model.coordinates[0] = 1.0


# ---- spectra of levels that grow


@settings(max_examples=15)
@given(st.sets(st.integers(11, 15), min_size=1))
def test_long_levels_grow_by_rows(cuts: set[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice, "LONG", 10)
        whole, part = grown(NOISE), grown(NOISE[:, :11])
        for start, stop in zip([11, *sorted(cuts)], [*sorted(cuts), 16], strict=True):
            part = part.append(T[start:stop], NOISE[:, start:stop])
            assert part.cascade.factor(1).coordinates.size == stop
        assert part.cascade.is_long(1)
        assert_same(part, whole)


def test_a_long_factor_is_of_no_use_once_the_first_slices_are_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(choice, "LONG", 10)
    part = grown(NOISE[:, :11])
    assert part.append(T[11:], NOISE[:, 11:]).cascade.factors[1] is part.cascade.factor(1)
    for shorter in (
        part.append(T[11:], NOISE[:, 11:], drop=1),
        part.append(T[11:], NOISE[:, 11:]).drop_first(1),
        part.append(T[11:], NOISE[:, 11:]).take(np.arange(1, 16)),
    ):
        assert shorter.cascade.factors[1] is None
        assert shorter.cascade.factors[0] is part.cascade.factors[0]
        np.testing.assert_allclose(
            shorter.cascade.predict(QUERIES),
            fit_cascade(NOISE[:, 1:], [X, T[1:]], LEVELS, mean=0.2).predict(QUERIES),
            atol=1e-9,
        )


LONG_FIELD = np.random.default_rng(1).standard_normal((5, 200))
LONG_TIMES = {"even": np.arange(200.0), "uneven": np.cumsum(np.linspace(0.5, 1.5, 200))}


@each_kind
@pytest.mark.parametrize("steps", LONG_TIMES)
@pytest.mark.parametrize("known", [False, True], ids=["unknown", "known"])
def test_a_long_level_grows_as_a_fit(
    monkeypatch: pytest.MonkeyPatch, joint: float | None, steps: str, known: bool
) -> None:
    """Blocks of 64 are crossed, with the factor known before each slice or not."""
    monkeypatch.setattr(choice, "LONG", 70)
    t, x = LONG_TIMES[steps], np.arange(5.0)
    levels = [replace(v, ridge=v.ridge if joint is None else 0.0) for v in LEVELS]
    how = {"mean": 0.2, "joint_ridge": joint}
    growing = Growing(fit_cascade(LONG_FIELD[:, :100], [x, t[:100]], levels, **how), 1)
    for stop in (120, 128, 129, 193, 200):
        if known:
            growing.cascade.factor(1)
        start = growing.coordinates.size
        growing = growing.append(t[start:stop], LONG_FIELD[:, start:stop])
    queries = [np.array([0.4, 2.0]), np.array([-1.0, t[63] + 0.3, t[199] + 0.7])]
    for drop in (0, 66):
        part = growing.drop_first(drop) if drop else growing
        whole = fit_cascade(LONG_FIELD[:, drop:], [x, t[drop:]], levels, **how)
        assert part.cascade.is_long(1)
        np.testing.assert_allclose(
            part.cascade.predict(queries), whole.predict(queries), rtol=1e-9, atol=1e-9
        )


def test_the_factor_of_a_long_level_is_handed_on_unless_slices_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(choice, "LONG", 10)
    growing = grown(NOISE[:, :14])
    factor = growing.cascade.factor(1)
    assert growing.append(T[14:], NOISE[:, 14:]).cascade.factors[1] is factor
    assert growing.append(T[14:], NOISE[:, 14:], drop=1).cascade.factors[1] is None


# ---- coordinates


def test_coordinates_are_stored_beside_the_slices() -> None:
    one = grown(NOISE[:, :9]).append(T[9:11], NOISE[:, 9:11])
    two = one.append(T[[11]], NOISE[:, [11]], drop=3)
    other = one.append(T[[13]], NOISE[:, [13]])
    assert one.coordinates.tolist() == T[:11].tolist()
    assert two.coordinates.tolist() == T[3:12].tolist()
    assert other.coordinates.tolist() == [*T[:11], T[13]]
    assert np.shares_memory(one.coordinates, two.coordinates)
    assert not two.coordinates.flags.writeable


def test_it_is_known_whether_coordinates_rise() -> None:
    growing = grown(NOISE[:, :9])
    assert growing.rises
    assert growing.append(T[9:11], NOISE[:, 9:11]).rises
    assert growing.append(T[9:11], NOISE[:, 9:11]).append(T[[12]], NOISE[:, [12]], drop=2).rises
    for wrong in ([8.0], [10.0, 9.5], [10.0, 10.0]):
        assert not growing.append(np.array(wrong), NOISE[:, : len(wrong)]).rises
    assert not growing.take(np.array([2, 1, 4])).rises
    assert growing.take(np.array([1, 2, 4])).append(T[[9]], NOISE[:, [9]]).rises
    assert not growing.take(np.array([4, 2, 1])).drop_first(1).append(T[[9]], NOISE[:, [9]]).rises


def test_samples_are_slices_in_the_frames_of_other_axes() -> None:
    for values in (SMOOTH, NOISE):
        for growing in (grown(values), grown(values.T, axis=0)):
            frame, places = growing.cascade.frames[1 - growing.axis], np.array([5, 2])
            expected = values[:, places] if frame is None else frame.T @ values[:, places]
            found = np.moveaxis(growing.samples(places), growing.axis, 1)
            np.testing.assert_allclose(found, expected, atol=1e-12)


def test_eigenvectors_are_computed_again_when_a_level_grew() -> None:
    longer = grown(NOISE[:, :9]).append(T[9:], NOISE[:, 9:])
    assert longer.cascade.factors[1] is None
    assert longer.cascade.factors[0] is not None


# ---- frames


def test_frames_widen_and_give_way() -> None:
    steps = np.arange(36.0)
    waves = [np.outer(np.cos(k * X), np.sin(k * steps / 3 + 0.1)) for k in range(1, 15)]
    values = np.array([sum(waves[: max(2, step - 20)])[:, step] for step in range(36)]).T
    values[:, -1] = NOISE[:, 0]

    def fitted(count: int) -> Growing:
        axes = [X, steps[:count]]
        return Growing(fit_cascade(values[:, :count], axes, LEVELS, mean=0.2), 1)

    model, widths = fitted(22), []
    for step in range(22, 36):
        model = model.append(steps[[step]], values[:, [step]])
        frame = model.cascade.frames[0]
        widths.append(40 if frame is None else frame.shape[1])
    assert widths[0] < 10
    assert widths == sorted(widths)
    assert widths[-1] == 40
    assert_same(model, fitted(36))


FRAME = np.eye(40)[:, :3]


@pytest.mark.parametrize(
    ("share", "width"), [(0.0, 3), (0.9e-13, 3), (1.1e-13, 4), (1e-12, 4), (1.0, 4)]
)
@pytest.mark.parametrize("size", [1e-100, 1.0, 1e100])
def test_a_frame_widens_by_what_is_not_round_off_of_the_slice(
    share: float, width: int, size: float
) -> None:
    slices = np.zeros((40, 2))
    slices[1, 0], slices[20, 1] = size, share * size
    wide = _widen(FRAME, 0, slices)
    assert wide is not None
    assert wide.shape == (40, width)
    assert (wide is FRAME) == (width == 3)
    np.testing.assert_allclose(wide.T @ wide, np.eye(width), atol=1e-13)
    np.testing.assert_allclose(wide @ (wide.T @ slices), slices, atol=2e-13 * size)


def test_directions_of_a_slice_are_told_from_round_off_one_by_one() -> None:
    """A tenth of what the slice as a whole may leave outside."""
    slices = np.zeros((40, 4))
    slices[1, 0], slices[20, 1], slices[21, 2], slices[22, 3] = 1.0, 1e-3, 1.1e-14, 0.9e-14
    wide = _widen(FRAME, 0, slices)
    assert wide is not None
    assert wide.shape == (40, 5)


@pytest.mark.parametrize(("more", "fits"), [(7, True), (8, False)])
def test_a_frame_has_a_quarter_of_the_samples_at_most(more: int, fits: bool) -> None:
    slices = np.zeros((40, more))
    slices[np.arange(10, 10 + more), np.arange(more)] = 1.0
    wide = _widen(FRAME, 0, slices)
    assert (wide is not None) == fits
    assert wide is None or wide.shape == (40, 10)
