"""The paper's recursion against the solution at once."""

from collections.abc import Callable

import numpy as np
import pytest
from baselines.known_samples import X, Y, field, grid, teach

from dkrls_cli.baselines.least_squares import recursive
from dkrls_cli.baselines.least_squares.recursive import RecursiveDKRLS
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.errors import InputError, SettingError


@pytest.mark.parametrize("shape", [(20,), (9, 12), (6, 5, 7), (4, 3, 5, 2)], ids=len)
def test_recursive_weights_are_those_of_the_cascade(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(shape))
    axes = [rng.permutation(np.linspace(0, 12, m)) for m in shape]
    sigmas = [0.8 + 0.2 * place for place in range(len(shape))]
    values = rng.standard_normal(shape)
    model = RecursiveDKRLS(sigmas=sigmas, ridge=1e-3)
    teach(model, grid(*axes), values.ravel(order="F"))
    levels = [Level(f"d{place}", Kernel(sigma=s), 1e-3) for place, s in enumerate(sigmas)]
    whole = fit_cascade(values, axes, levels)
    expected = whole.weights(range(len(shape)))
    np.testing.assert_allclose(model.weights, expected, atol=1e-8 * np.abs(expected).max())
    new = [rng.uniform(0, 12, 3) for _ in shape]
    np.testing.assert_allclose(
        model.predict(grid(*new)), whole.predict(new).ravel(order="F"), atol=1e-8
    )


def test_recursive_answers_while_the_grid_is_incomplete() -> None:
    """The lines that are complete, and one that is cut short."""
    model = teach(RecursiveDKRLS(sigmas=(0.5, 0.6)), X[:22], Y[:22])
    assert model.weights.shape == (9, 3)
    np.testing.assert_allclose(model.predict(X[:18]), Y[:18], atol=1e-3)
    np.testing.assert_allclose(model.predict(X[18:22]), Y[18:22], atol=1e-3)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda points: np.delete(points, 4, axis=0),
        lambda points: np.delete(points, 13, axis=0),
        lambda points: np.insert(points, 13, points[12], axis=0),
        lambda points: points[np.argsort(points[:, 0], kind="stable")][::2],
    ],
)
def test_recursive_refuses_what_is_not_a_grid(
    spoil: Callable[[np.ndarray], np.ndarray],
) -> None:
    points = spoil(X)
    with pytest.raises(InputError, match="must be a grid"):
        teach(RecursiveDKRLS(), points, field(points))


def test_recursive_goes_on_after_a_refusal() -> None:
    model, expected = RecursiveDKRLS(), teach(RecursiveDKRLS(), X, Y).weights
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        if i in (13, 18):
            with pytest.raises(InputError, match="must be a grid"):
                model.update([x[0] + 0.1, x[1] + 0.1], 1.0)
        model.update(x, y)
    np.testing.assert_array_equal(model.weights, expected)


def test_recursive_needs_a_sigma_for_each_feature() -> None:
    with pytest.raises(InputError, match="3 features, the model 2 levels"):
        RecursiveDKRLS().update([0.0, 0.0, 0.0], 1.0)
    with pytest.raises(SettingError, match="one for each dimension"):
        RecursiveDKRLS(sigmas=())


def test_answers_in_blocks_are_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    model = teach(RecursiveDKRLS(), X, Y)
    expected = model.predict(X + 0.1)
    monkeypatch.setattr(recursive, "ANSWER_CELLS", 100)
    np.testing.assert_allclose(model.predict(X + 0.1), expected, rtol=1e-12, atol=1e-14)


def test_a_later_line_must_not_be_longer_than_the_first() -> None:
    model = RecursiveDKRLS()
    for point in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)):
        model.update(point, 1.0)
    with pytest.raises(InputError, match=r"Coordinate 2\.0 of dimension 0 .* \(2 of 2\)"):
        model.update((2.0, 1.0), 1.0)
    assert model.weights.shape == (2, 2)
