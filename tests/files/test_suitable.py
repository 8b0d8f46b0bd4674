"""All variables of a file but directions and codes, each of which is named with the reason."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from shell import dkrls, refusal

from dkrls_cli.errors import InputError
from dkrls_cli.files.observed.errors import GivenErrors, open_with_errors
from dkrls_cli.files.reading import open_source, open_variables
from dkrls_cli.files.suitable import keep_suitable

X, Y = np.arange(6.0), np.arange(5.0)
WAVE = np.sin(X[:, None] + Y)
ROUND = {"standard_name": "wind_from_direction", "units": "degree"}
CODES = {"flag_values": np.array([0, 1], "i1"), "flag_meanings": "sea land"}


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A file of a wind: direction and kind of surface first, then speed and a narrow direction."""
    wind = np.where(WAVE > 0, 350.0, 10.0) + WAVE
    wind[2, 2] = np.nan
    found = xr.Dataset(
        {
            "dir": (("x", "y"), wind, ROUND),
            "kind": (("x", "y"), (WAVE > 0).astype("i1"), CODES),
            "speed": (("x", "y"), np.where(WAVE > 0.9, np.nan, WAVE)),
            "trade": (("x", "y"), 80.0 + WAVE, ROUND),
        },
        {"x": X, "y": Y},
    )
    found.to_netcdf(tmp_path / "wind.nc")
    return str(tmp_path / "wind.nc")


def test_directions_and_codes_are_left_out_of_all(path: str) -> None:
    sources = open_variables([path], ["all"])
    assert [source.name for source in sources] == ["speed", "trade"]
    direction, kind = sources[0].notes
    assert direction.startswith("'dir' is left out. 'dir' holds directions from 9.")
    assert kind.startswith("'kind' is left out. 'kind' holds codes, as flag_values")
    assert sources[1].notes == []
    withheld = open_with_errors([path], ["all"], None, GivenErrors.read(["dir=3"]))
    assert [source.name for source in withheld] == ["speed", "trade"]


def test_it_is_an_error_if_none_is_left(path: str) -> None:
    with pytest.raises(InputError, match=r"No variable is left .* 'dir' holds .* 'kind' holds"):
        keep_suitable([open_source([path], name) for name in ("dir", "kind")])


def test_columns_of_tables_are_left_out(tmp_path: Path) -> None:
    rows = [f"{x},{y},{(350, 10)[x % 2]},{x + y}" for x in range(4) for y in range(3)]
    table = tmp_path / "wind.csv"
    table.write_text("\n".join(["x,y,wind_direction,speed", *rows]))
    (source,) = open_variables([str(table)], ["all"], ["x", "y"])
    assert source.name == "speed"
    assert source.notes[0].startswith("'wind_direction' is left out")


@pytest.mark.parametrize(
    "words",
    [
        ["fit", "-o", "out.npz"],
        ["fill", "-o", "out.nc"],
        ["check"],
        ["regrid", "--at", "x=0:5:0.5", "-o", "out.nc"],
        ["validate", "--holdout", "0.2"],
    ],
    ids=lambda words: words[0],
)
def test_a_command_does_the_others_and_refuses_one_by_name(
    path: str, tmp_path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command, *more = words
    given = [command, path, *more, "--ridge", "1e-6", "--sigma", "2"]
    said = dkrls(*given, "--var", "all").stderr
    assert said.count("Note: 'dir' is left out. 'dir' holds directions") == 1, said
    assert said.count("Note: 'kind' is left out. 'kind' holds codes") == 1, said
    assert refusal(*given, "--var", "dir", *(["--overwrite"] if "-o" in more else [])).startswith(
        "Error: 'dir' holds directions"
    )
