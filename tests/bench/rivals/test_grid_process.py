"""The grid process against a dense one, and the grid that its settings are chosen on."""

from __future__ import annotations

import numpy as np
import pytest

from dkrls_cli.bench.rivals import grid_process


def test_the_grid_process_is_the_dense_one() -> None:
    """The same kernels and noise in one solve over all cells."""
    torch = pytest.importorskip("torch", reason="the grid process needs gpytorch")
    pytest.importorskip("gpytorch", reason="the grid process needs gpytorch")
    nodes = [np.linspace(0, 1, 6), np.linspace(0, 2, 7)]
    values = np.asarray(np.cos(nodes[0])[:, None] * nodes[1])
    scaled = [torch.from_numpy((c - c.mean()) / c.std())[:, None] for c in nodes]
    kernels, noise = grid_process.train(scaled, torch.from_numpy(values / values.std()))
    gram = np.kron(
        *[k(c).to_dense().detach().numpy() for k, c in zip(kernels, scaled, strict=True)]
    )
    dense = np.linalg.solve(gram + noise.item() * np.eye(42), values.ravel() / values.std())
    with torch.no_grad():
        ours = grid_process.kronecker(kernels, scaled, scaled).add_diagonal(noise)
        weights = ours.solve(torch.from_numpy(values.reshape(-1, 1) / values.std()))
    fitted = gram @ dense
    np.testing.assert_allclose(gram @ weights.numpy().ravel(), fitted, atol=1e-6)


def test_a_large_grid_is_thinned_evenly() -> None:
    nodes = [np.arange(300.0)[::-1], np.arange(400.0)]
    axes, values = grid_process.thin_grid(nodes, nodes[0][:, None] + 1000 * nodes[1])
    assert values.shape == (150, 200)
    np.testing.assert_array_equal(values, axes[0][:, None] + 1000 * axes[1])
    assert np.unique(np.diff(axes[0])) == 2


@pytest.mark.parametrize(("cells", "shape"), [(120, (12, 10)), (119, (6, 10)), (59, (6, 5))])
def test_a_grid_is_thinned_only_as_far_as_needed(
    cells: int, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grid_process, "CHOICE_CELLS", cells)
    _, values = grid_process.thin_grid([np.arange(12.0), np.arange(10.0)], np.zeros((12, 10)))
    assert values.shape == shape
