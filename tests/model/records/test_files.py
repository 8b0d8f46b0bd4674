"""Records in fewer bytes, and those of several models."""

import numpy as np
import pytest
from kept_records import through_a_file

from dkrls_cli.model.records.files import narrow_record, widen_arrays


def test_a_record_is_narrowed_and_widened() -> None:
    arrays = {
        "core": np.array([0.5, 0.25]),
        "coordinates_0": np.arange(50.0),
        "frame_0": np.arange(50.0).reshape(25, 2),
        "absent": np.zeros(3, np.uint8),
    }
    header, narrowed = narrow_record({"name": "t"}, arrays)
    assert header["name"] == "t"
    assert sorted(header["narrowed"]) == ["coordinates_0", "core", "frame_0"]
    assert sorted(narrowed) == ["absent", "core", "frame_0"]  # equal steps are in the header
    again = widen_arrays(through_a_file(header), narrowed)
    assert sorted(again) == sorted(arrays)
    for name, array in arrays.items():
        assert again[name].dtype == ("f4" if name == "core" else array.dtype)  # the core is large
        np.testing.assert_array_equal(again[name], array)
    assert widen_arrays({}, arrays) == arrays


@pytest.mark.parametrize("count", [2, 5000], ids=["as it is", "exponents apart"])
def test_a_core_that_is_exact_in_single_precision_is_written_as_double(count: int) -> None:
    """The very bytes that a core of double precision has, and back as it was."""
    core = np.arange(count, dtype="f4") / 4
    exact = narrow_record({}, {"core": core}, {"core"})
    wide = narrow_record({}, {"core": core.astype("f8")})
    assert exact[0] == wide[0]
    np.testing.assert_array_equal(exact[1]["core"], wide[1]["core"])
    rounded, _ = narrow_record({}, {"core": core})
    assert rounded != wide[0]
    again = widen_arrays(*exact)["core"]
    assert again.dtype == np.float32
    np.testing.assert_array_equal(again, core)
