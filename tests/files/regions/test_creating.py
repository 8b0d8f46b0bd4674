"""Files are created without values, and chunks are those of regions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.errors import OutputError
from dkrls_cli.files.regions import creating
from dkrls_cli.files.regions.creating import create_file, finish_file, plan_file, region_chunks
from dkrls_cli.files.regions.slots import Blank, Tally
from dkrls_cli.grid.axes import axis_of, index_axis

SIZES = st.dictionaries(st.sampled_from("tzyx"), st.integers(1, 3000), min_size=1)


@given(sizes=SIZES, regions=st.dictionaries(st.sampled_from("tzyx"), st.integers(1, 400)))
def test_no_two_regions_share_a_chunk(sizes: dict[str, int], regions: dict[str, int]) -> None:
    chunks = region_chunks(sizes, regions, 8)
    for (dim, size), chunk in zip(sizes.items(), chunks, strict=True):
        assert 1 <= chunk <= size
        if regions.get(dim, size) < size:
            assert regions[dim] % chunk == 0
    assert 8 * np.prod(chunks) <= creating._CHUNK


def test_a_file_has_everything_but_values(tmp_path: Path) -> None:
    axes = (axis_of("lat", [1.0, 2.0], {"units": "degrees_north"}), index_axis("n", 3))
    plan = plan_file([Blank("t", axes, {"units": "K"})], ["dkrls"], zarr=False)
    path = tmp_path / "a.nc"
    create_file(path, plan, "a.nc")
    finish_file(path, plan, {"t": Tally()})
    with xr.open_dataset(path) as found:
        assert np.isnan(found.t.values).all()
        assert found.t.shape == (2, 3)
        assert found.t.attrs == {"units": "K"}
        assert found.lat.values.tolist() == [1.0, 2.0]


def test_a_placeholder_of_any_size_takes_no_memory() -> None:
    axes = tuple(index_axis(name, 100_000) for name in "yx")
    plan = plan_file([Blank("t", axes)], [], zarr=True, regions={"y": 10})
    assert plan.dataset.t.nbytes == 8 * 10**10
    assert plan.encoding["t"]["chunks"] == (5, 100_000)


def test_a_name_that_the_format_cannot_have_is_refused(tmp_path: Path) -> None:
    plan = plan_file([Blank("a/b", (index_axis("x", 3),))], [], zarr=False)
    with pytest.raises(OutputError, match=r"'out\.nc' cannot be written"):
        create_file(tmp_path / "a.nc", plan, "out.nc")
