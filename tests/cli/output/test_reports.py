"""Pictures and pages of fits and validations: refused before the work, and written whole."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from page_reader import PageReader
from sample_files import LAT, LON, latlon
from shell import dkrls, refusal

from dkrls_cli import load_model
from dkrls_cli.files.source import Source
from dkrls_cli.plots import style

pytest.importorskip("matplotlib", reason="drawing needs the extra plot")

GIVEN = ("--kernel", "matern32", "--sigma", "lat=40,lon=60,time=20", "--ridge", "1e-3")
HELD = ("--holdout", "time=0.25", "--repeats", "2", *GIVEN)


# Before the work ----------------------------------------------------------------------------------


@pytest.fixture
def _no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Source, "grid", lambda _: pytest.fail("data was read"))


def commands(globe: Path, folder: Path) -> list[list[object]]:
    """Return the commands that draw, without the file that they draw to."""
    fit = ["fit", globe, "-o", folder / "m.npz", "--plot"]
    return [fit, *(["validate", globe, *HELD, option] for option in ("--plot", "--report"))]


@pytest.mark.usefixtures("_no_work")
def test_a_file_that_exists_is_kept(globe: Path, tmp_path: Path) -> None:
    for words, name in zip(commands(globe, tmp_path), ("a.png", "b.svg", "c.html"), strict=True):
        (tmp_path / name).write_text("old")
        line = refusal(*words, tmp_path / name)
        assert "exists already" in line
        assert "--overwrite" in line
        assert (tmp_path / name).read_text() == "old"


@pytest.mark.usefixtures("_no_work")
def test_other_endings_are_refused(globe: Path, tmp_path: Path) -> None:
    for words, name in zip(commands(globe, tmp_path), ("a.jpg", "b.html", "c.png"), strict=True):
        line = refusal(*words, tmp_path / name, code=2)
        assert "Expected a name that ends in" in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("_no_work")
def test_no_matplotlib_is_said_before_the_work(
    globe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(style, "find_spec", lambda _: None)
    for words, name in zip(commands(globe, tmp_path), ("a.png", "b.svg", "c.html"), strict=True):
        assert "matplotlib is not installed" in refusal(*words, tmp_path / name)


@pytest.mark.usefixtures("_no_work")
def test_a_page_cannot_be_its_own_input_and_needs_a_folder(tmp_path: Path, globe: Path) -> None:
    page = tmp_path / "a.html"
    page.write_bytes(globe.read_bytes())
    words = ("validate", page, *HELD, "--report", page, "--overwrite")
    assert "is one of the inputs" in refusal(*words)
    assert "There is no folder" in refusal("validate", globe, *HELD, "--report", page / "x.html")


@pytest.mark.usefixtures("_no_work")
def test_a_date_that_is_none_is_refused_before_the_work(globe: Path, tmp_path: Path) -> None:
    words = ("validate", globe, *HELD, "--report", tmp_path / "a.html")
    assert "SOURCE_DATE_EPOCH is 'today'" in refusal(*words, code=2, SOURCE_DATE_EPOCH="today")


def test_a_dry_run_has_tried_nothing_to_draw(globe: Path, tmp_path: Path) -> None:
    line = refusal("fit", globe, "--dry-run", "--plot", tmp_path / "a.png", code=2)
    assert "--dry-run fits nothing" in line


# What is written ----------------------------------------------------------------------------------


def test_a_fit_draws_what_it_has_tried_and_is_the_same_without(globe: Path, tmp_path: Path) -> None:
    words = ("fit", globe, "--json", "-o")
    picture = tmp_path / "tried.svg"
    result = dkrls(*words, tmp_path / "a.npz", "--plot", picture, "-v")
    assert "lat: error on slices left out, at the best ridge; sigma in degrees_north" in (
        result.stderr  # details are printed beside
    )
    told = json.loads(result.stdout)
    assert told["plot"] == str(picture)
    drawn = picture.read_text().split("<!-- ")
    for row in told["levels"]:
        assert any(text.startswith(f"{row['dimension']}: {row['kernel']}") for text in drawn)
    assert any(text.startswith("taken") for text in drawn)
    assert "plot" not in json.loads(dkrls(*words, tmp_path / "b.npz").stdout)
    one, other = (load_model(tmp_path / name) for name in ("a.npz", "b.npz"))
    assert one.levels == other.levels
    assert one.errors == other.errors


@pytest.mark.slow
def test_several_variables_have_a_row_each(tmp_path: Path) -> None:
    other = (("lat", "lon"), np.add.outer(LAT, LON), {"units": "m"})
    source = latlon(tmp_path / "two.nc", extra={"other": other})
    words = ("--var", "all", "--kernel", "matern32", "--sigma", "50")
    dkrls("fit", source, "-o", tmp_path / "m.npz", *words, "--plot", tmp_path / "a.svg")
    drawn = (tmp_path / "a.svg").read_text()
    assert drawn.index("<!-- t -->") < drawn.index("<!-- other -->")
    page = tmp_path / "a.html"
    dkrls("validate", source, *words, "--holdout", "lon=0.3", "--repeats", "1", "--report", page)
    read = PageReader(page.read_text())
    assert "Validation of t, other" in read.texts
    assert {"temperature", "other"} <= set(read.texts)  # the long name, or else the name


@pytest.mark.slow
def test_hold_outs_are_drawn_and_reported(globe: Path, tmp_path: Path) -> None:
    page, picture = tmp_path / "p.html", tmp_path / "p.png"
    words = ("validate", globe, *HELD, "--json", "--overwrite")
    limit = ("--fail-above", "rmse=1e-9")
    told = json.loads(
        dkrls(*words, *limit, "--report", page, "--plot", picture, "--seed", "3", code=3).stdout
    )
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert (told["plot"], told["report"]) == (str(picture), str(page))
    read = PageReader(page.read_text())
    assert read.facts["root mean square error"][0].split()[0] == f"{told['metrics']['rmse']:.4g}"
    assert any(text.startswith("Missed: rmse is ") for text in read.texts)
    shown = dict(zip(read.texts, read.texts[1:], strict=False))
    assert shown["inputs"] == globe.name
    assert shown["seed"] == "3"
    assert shown["holdout"] == "time 0.25"
    assert "numpy " in shown["versions"]
    command = next(text for text in read.texts if text.startswith("dkrls validate"))
    assert command.startswith(f"dkrls validate {globe.name} --holdout time=0.25 --repeats 2")
    assert str(tmp_path) not in page.read_text()
    assert told["metrics"] == json.loads(dkrls(*words, "--seed", "3").stdout)["metrics"] | {
        name: told["metrics"][name] for name in ("fit_seconds", "predict_seconds")
    }


@pytest.mark.slow
def test_a_page_is_the_same_at_the_same_date(globe: Path, tmp_path: Path) -> None:
    written = []
    for date in ("86400", "86400"):
        page = tmp_path / "p.html"
        words = ("validate", globe, *HELD, "--report", page, "--overwrite")
        dkrls(*words, SOURCE_DATE_EPOCH=date)
        written.append(page.read_bytes())
    assert written[0] == written[1]
    assert b"1970-01-02T00:00:00Z" in written[0]
    assert list(tmp_path.iterdir()) == [tmp_path / "p.html"]


@pytest.mark.slow
def test_a_model_is_drawn_and_reported(model: Path, globe: Path, tmp_path: Path) -> None:
    page, picture = tmp_path / "p.htm", tmp_path / "p.PNG"
    words = ("validate", globe, "--model", model, "--smooth", "--json")
    told = json.loads(dkrls(*words, "--report", page, "--plot", picture).stdout)
    assert picture.read_bytes().startswith(b"\x89PNG")
    read = PageReader(page.read_text())
    shown = dict(zip(read.texts, read.texts[1:], strict=False))
    assert shown["model"] == model.name
    assert shown["fit"].startswith("dkrls ")
    assert f"from {globe.name}" in shown["fit"]
    n, nominal = told["calibration"]["n"], told["calibration"]["nominal"]
    assert n == 12 * 5 * 8
    assert nominal[:2] == [0.1, 0.2]
    assert told["calibration"]["observed"][nominal.index(0.9)] == told["metrics"]["coverage90"]
    assert np.isfinite(told["calibration"]["standardised_rms"])


def test_text_labels_and_one_dimension_can_be_reported(sites: Path, tmp_path: Path) -> None:
    source = sites.with_name("sites.nc")
    page = tmp_path / "p.html"
    given = ("--kernel", "matern32", "--sigma", "2", "--ridge", "1e-3", "--report", page)
    dkrls("validate", source, "--holdout", "x=0.4", "--repeats", "1", *given)
    read = PageReader(page.read_text())
    assert read.facts["site"][0] == "3: a to c"
    assert read.facts["site"][2] == "2 positions"
