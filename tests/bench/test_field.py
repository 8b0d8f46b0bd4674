"""The field of today: every contender answers well, as its own library does, and anywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.interpolate import NdBSpline, RBFInterpolator, RegularGridInterpolator
from scipy.interpolate import make_interp_spline as splined

from dkrls_cli.bench import field
from dkrls_cli.bench.field import FIELD, Contender

RNG = np.random.default_rng(3)
NODES = [np.sort(RNG.choice(np.linspace(0, 3, 18), 15, False)), np.linspace(-40.0, 50.0, 11)]
INSIDE = [np.array([0.9, 1.4, 2.1]), np.array([-11.0, 3.0, 22.0, 31.0])]
OUTSIDE = [np.array([-0.3, 3.4]), np.array([-60.0, 0.0, 58.0])]


def wave(x: Any, y: Any) -> Any:
    return 7.0 + np.sin(2 * x) * np.cos(y / 30)


def mesh(axes: Any) -> list[np.ndarray]:
    return [part.ravel() for part in np.meshgrid(*axes, indexing="ij")]


def answered(contender: Contender, nodes: Any, queries: Any) -> np.ndarray:
    """On the product of the queries, whichever kind it is."""
    if contender.missing():
        pytest.skip(contender.missing())
    shape = [query.size for query in queries]
    if contender.scattered:
        parts = mesh(nodes)
        return contender.fit(parts, wave(*parts))(mesh(queries)).reshape(shape)
    return contender.fit(nodes, wave(*np.ix_(*nodes)))(queries)


@pytest.fixture(params=FIELD)
def contender(request: pytest.FixtureRequest) -> Contender:
    return FIELD[request.param]


GOOD = {
    "linear": 0.1,
    "xarray": 0.1,
    "rbf": 0.01,
    "cubic": 2e-3,
    "spline3": 2e-3,
    "spline5": 2e-4,
}


def test_a_smooth_field_is_answered_well(contender: Contender) -> None:
    """Kernels meet it to a hundredth of a percent, polynomials as their degree lets them."""
    errors = np.abs(answered(contender, NODES, INSIDE) - wave(*np.ix_(*INSIDE)))
    assert errors.max() < GOOD.get(contender.name, 1e-3)


def test_answers_outside_are_finite(contender: Contender) -> None:
    answers = answered(contender, NODES, OUTSIDE)
    assert np.isfinite(answers).all()
    assert answers.shape == (2, 3)


def test_the_order_of_coordinates_is_of_no_matter(contender: Contender) -> None:
    mixed = [RNG.permutation(NODES[0]), NODES[1][::-1]]
    again = answered(contender, mixed, INSIDE)
    loose = 1e-2 if contender.library == "sklearn" else 1e-6  # these draw samples by their place
    np.testing.assert_allclose(again, answered(contender, NODES, INSIDE), atol=loose)


def test_the_same_twice_is_the_same(contender: Contender) -> None:
    first = answered(contender, NODES, INSIDE)
    np.testing.assert_array_equal(first, answered(contender, NODES, INSIDE))


@pytest.mark.parametrize("dims", [1, 3])
def test_any_number_of_dimensions(contender: Contender, dims: int) -> None:
    if contender.missing():
        pytest.skip(contender.missing())
    nodes = [np.linspace(0, 1, 6 + place) for place in range(dims)]
    queries = [np.array([0.3, 0.55, 0.7]) + place / 50 for place in range(dims)]
    known, asked = (mesh(a) if contender.scattered else np.ix_(*a) for a in (nodes, queries))
    values = np.asarray(sum(np.sin(k) for k in known))
    given = (known, asked) if contender.scattered else (nodes, queries)
    answers = contender.fit(given[0], values)(given[1])
    np.testing.assert_allclose(answers, sum(np.sin(a) for a in asked), atol=0.02)


# Against their own libraries ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["linear", "cubic"])
@pytest.mark.parametrize("queries", [INSIDE, OUTSIDE])
def test_regular_grids_are_those_of_scipy(name: str, queries: Any) -> None:
    theirs = RegularGridInterpolator(
        NODES, wave(*np.ix_(*NODES)), name, bounds_error=False, fill_value=None
    )(np.stack(np.meshgrid(*queries, indexing="ij"), axis=-1))
    np.testing.assert_allclose(answered(FIELD[name], NODES, queries), theirs, rtol=1e-12)


@pytest.mark.parametrize("degree", [3, 5])
def test_splines_one_after_another_are_those_of_their_tensor_product(degree: int) -> None:
    first = splined(NODES[0], wave(*np.ix_(*NODES)), k=degree)
    second = splined(NODES[1], first.c, k=degree, axis=1)
    theirs = NdBSpline((first.t, second.t), np.moveaxis(second.c, 0, 1), degree)
    points = np.stack(np.meshgrid(*INSIDE, indexing="ij"), axis=-1)
    ours = answered(FIELD[f"spline{degree}"], NODES, INSIDE)
    np.testing.assert_allclose(ours, theirs(points), rtol=1e-11)


def test_xarray_is_its_own_interp_inside() -> None:
    array = xr.DataArray(wave(*np.ix_(*NODES)), {"x": NODES[0], "y": NODES[1]}, ["x", "y"])
    theirs = array.interp(x=INSIDE[0], y=INSIDE[1]).values
    np.testing.assert_allclose(answered(FIELD["xarray"], NODES, INSIDE), theirs, rtol=1e-12)


def test_linear_methods_draw_on_alike_outside() -> None:
    linear, ours = (answered(FIELD[name], NODES, OUTSIDE) for name in ("linear", "xarray"))
    np.testing.assert_allclose(ours, linear, rtol=1e-12)


def test_rbf_is_that_of_scipy_in_steps_of_the_grid() -> None:
    steps = [np.ptp(NODES[0]) / 14, 9.0]
    known, asked = np.column_stack(mesh(NODES)), np.column_stack(mesh(INSIDE))
    theirs = RBFInterpolator(known / steps, wave(*known.T))(asked / steps)
    ours = answered(FIELD["rbf"], NODES, INSIDE).ravel()
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_rbf_of_many_samples_sees_the_nearest() -> None:
    """With coordinates as they are, the nearest would all lie on one line."""
    nodes = [np.linspace(0, 3000, 40), np.linspace(0, 1, 50)]
    known, asked = mesh(nodes), mesh([np.array([400.0, 1700.0]), np.array([0.31, 0.77])])
    answers = FIELD["rbf"].fit(known, known[0] / 1000 + known[1])(asked)
    np.testing.assert_allclose(answers, asked[0] / 1000 + asked[1], rtol=1e-6)


def test_noise_is_smoothed_by_those_who_know_of_it() -> None:
    axes = [np.linspace(0, 3, 14), np.linspace(-40.0, 50.0, 14)]
    parts = mesh(axes)
    noisy = wave(*parts) + 0.2 * RNG.standard_normal(parts[0].size)
    for name in ("kernel-ridge", "gp", "gpytorch"):
        contender = FIELD[name]
        if contender.missing():
            continue
        if contender.scattered:
            answers = contender.fit(parts, noisy)(parts)
        else:
            answers = contender.fit(axes, noisy.reshape(14, 14))(axes).ravel()
        assert np.sqrt(np.mean((answers - wave(*parts)) ** 2)) < 0.09, name


def test_the_grid_process_is_the_dense_one() -> None:
    """The same kernels and noise in one solve over all cells."""
    torch = pytest.importorskip("torch", reason="the grid process needs gpytorch")
    nodes = [np.linspace(0, 1, 6), np.linspace(0, 2, 7)]
    values = np.asarray(np.cos(nodes[0])[:, None] * nodes[1])
    scaled = [torch.from_numpy((c - c.mean()) / c.std())[:, None] for c in nodes]
    kernels, noise = field._trained(scaled, torch.from_numpy(values / values.std()))
    gram = np.kron(
        *[k(c).to_dense().detach().numpy() for k, c in zip(kernels, scaled, strict=True)]
    )
    dense = np.linalg.solve(gram + noise.item() * np.eye(42), values.ravel() / values.std())
    with torch.no_grad():
        ours = field._kronecker(kernels, scaled, scaled).add_diagonal(noise)
        weights = ours.solve(torch.from_numpy(values.reshape(-1, 1) / values.std()))
    fitted = gram @ dense
    np.testing.assert_allclose(gram @ weights.numpy().ravel(), fitted, atol=1e-6)


# Who is there -------------------------------------------------------------------------------------


def test_the_field_is_the_one_that_is_promised() -> None:
    names = ["linear", "cubic", "spline3", "spline5", "xarray", "rbf", "kernel-ridge", "gp"]
    assert [*names, "gpytorch"] == list(FIELD)
    assert {c.name for c in FIELD.values() if c.scattered} == {"rbf", "kernel-ridge", "gp"}
    for name, contender in FIELD.items():
        assert contender.name == name
        assert 0 < len(contender.summary) <= 45


@pytest.mark.parametrize(
    ("name", "package"),
    [("gp", "scikit-learn"), ("kernel-ridge", "scikit-learn"), ("gpytorch",) * 2],
)
def test_who_is_not_there_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, name: str, package: str
) -> None:
    monkeypatch.setattr(field, "find_spec", lambda library: None)
    why = f"{package} is not installed: pip install 'dkrls-cli[bench]'"
    assert FIELD[name].missing() == why


def test_scipy_and_xarray_are_always_there() -> None:
    assert not any(c.missing() for c in FIELD.values() if c.library in ("scipy", "xarray"))


def test_a_large_grid_is_thinned_evenly_for_the_choice() -> None:
    nodes = [np.arange(300.0)[::-1], np.arange(400.0)]
    axes, values = field._thinned(nodes, nodes[0][:, None] + 1000 * nodes[1])
    assert values.shape == (150, 200)
    np.testing.assert_array_equal(values, axes[0][:, None] + 1000 * axes[1])
    assert np.unique(np.diff(axes[0])) == 2
