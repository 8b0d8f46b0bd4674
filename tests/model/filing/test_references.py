"""References in model files."""

import os

import pytest

from dkrls_cli.errors import InputError
from dkrls_cli.model.filing.references import (
    REFERENCE,
    Reference,
    reference_from,
    reference_record,
    stand_in_core,
)


def test_paths_are_kept_relative_to_the_model(tmp_path):
    data = tmp_path / "data" / "a.nc"
    data.parent.mkdir()
    data.write_bytes(b"some")
    found = Reference.of("f", (str(data),))
    assert found.changed == []
    record = reference_record(found, (3, 4), 1.5, str(tmp_path / "models"))
    REFERENCE(record, "reference")
    assert record["files"][0]["path"] == os.path.join("..", "data", "a.nc")
    assert reference_from(record, str(tmp_path / "models")) == found
    core = stand_in_core(record)
    assert (core.shape, core.strides, float(core[2, 3])) == ((3, 4), (0, 0), 1.5)
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    os.rename(tmp_path / "data", moved / "data")
    there = reference_from(record, str(moved / "models"))
    assert there.changed == []
    assert str(there) == f"f in {moved / 'data' / 'a.nc'}"
    with pytest.raises(InputError, match="there is no file"):
        found.check()


def test_data_that_has_changed_is_refused(tmp_path):
    data = tmp_path / "a.nc"
    data.write_bytes(b"some")
    found, by_contents = (
        Reference.of("f", (str(data),), contents=contents) for contents in (False, True)
    )
    os.utime(data, ns=(1, 1))
    by_contents.check()  # written again, but the same
    with pytest.raises(InputError, match=r"refers to data of 'f' that has changed: a.nc has other"):
        found.check()
    data.write_bytes(b"same"[::-1])
    with pytest.raises(InputError, match="Fit the model again"):
        by_contents.check()
