"""The page of a validation: one file that loads nothing, says what was found and hides nothing."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from dataclasses import replace
from html import escape, unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_reader import PageReader

from dkrls_cli import fit
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.grid.grid import Grid
from dkrls_cli.model.settings import Settings
from dkrls_cli.model.validation.validate import validate_holdout, validate_model
from dkrls_cli.plots.reports import illustrations
from dkrls_cli.plots.reports import page as pages
from dkrls_cli.plots.reports.illustrations import QUALITIES, Quality
from dkrls_cli.plots.reports.page import LARGEST, Provenance, ReportedVariable, make_page
from dkrls_cli.tuning.trials.record import ChoiceRecord

pytest.importorskip("matplotlib", reason="drawing needs the extra plot")

EVIL = "<script>alert('\"x')</script>&amp;"
TIME = axis_of("time", np.datetime64("2020-01-01") + np.arange(10))
X = axis_of(EVIL, np.arange(9.0), {"units": EVIL, "long_name": EVIL})
VALUES = np.sin(np.add.outer(np.arange(10) / 3, np.arange(9) / 4)) + 3
VALUES += 0.05 * np.random.default_rng(0).standard_normal(VALUES.shape)
GRID = Grid(VALUES, (TIME, X), EVIL, {"units": "K"})
GIVEN = Settings(kernel={"time": "matern32", EVIL: "auto"}, sigma={"time": 4.0}, ridge=1e-3)
FACTS = {"inputs": EVIL, "seed": "0"}
FROM = Provenance(f"dkrls validate {EVIL}", FACTS, "2020-01-01T00:00:00Z")


@pytest.fixture(scope="module")
def held() -> ReportedVariable:
    record = ChoiceRecord()
    options: dict[str, Any] = {"holdout": 0.3, "repeats": 2, "evidence": True}
    found = validate_holdout(GRID, GIVEN, **options, watch=record)
    return ReportedVariable(found, record, [f"rmse of {EVIL} is 2, allowed is 1."])


@pytest.fixture(scope="module")
def page(held: ReportedVariable) -> str:
    return make_page([held], FROM)


# One file that loads nothing ----------------------------------------------------------------------


def test_a_page_loads_nothing_and_runs_nothing(page: str) -> None:
    read = PageReader(page)
    tags = {tag for tag, _ in read.elements}
    assert not tags & {"script", "link", "iframe", "object", "embed", "base", "form", "a"}
    for tag, attributes in read.elements:
        assert not any(name.startswith("on") or name == "style" for name in attributes), tag
        for name in ("src", "href", "srcset", "action", "data", "poster", "background"):
            assert str(attributes.get(name, "data:image/")).startswith("data:image/"), tag
    style = page[page.index("<style>") : page.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    assert len(page.encode()) < LARGEST


def test_drawings_in_a_page_load_nothing_either(page: str) -> None:
    sources = [str(image["src"]) for image in PageReader(page).named("img")]
    drawings = [
        base64.b64decode(source.partition(",")[2]).decode()
        for source in sources
        if "svg" in source.partition(",")[0]
    ]
    assert drawings
    assert any("image/png" in source for source in sources)
    for drawing in drawings:
        assert "<script" not in drawing
        linked = re.findall(r'(?:href|src)="([^"]*)"', drawing)
        assert all(one.startswith(("#", "data:image/")) for one in linked)
        assert not re.findall(r"url\((?!#)", drawing)


def test_names_of_a_file_are_text_wherever_they_stand(page: str) -> None:
    assert "<script" not in page
    read = PageReader(page)
    assert f"Validation of {EVIL}" in read.texts
    assert f"dkrls validate {EVIL}" in read.texts
    assert f"Missed: rmse of {EVIL} is 2, allowed is 1." in read.texts
    assert any(EVIL in row for row in read.rows)  # the dimension of that name
    assert any(EVIL in str(image["alt"]) for image in read.named("img"))


def test_a_page_is_the_same_every_time(held: ReportedVariable, page: str) -> None:
    runs = [{**run, "fit_seconds": 99.0} for run in held.found.runs]
    metrics = {**held.found.metrics, "fit_seconds": 99.0, "predict_seconds": 98.0}
    again = replace(held.found, runs=tuple(runs), metrics=metrics, seconds=97.0)
    assert make_page([replace(held, found=again)], FROM) == page


def test_every_picture_has_a_text_and_a_caption(page: str) -> None:
    read = PageReader(page)
    images = read.named("img")
    assert len(images) == 3 + 2 + 2 + 1  # slice, errors by coordinate, calibration, one level tried
    assert all(image["alt"] for image in images)
    assert len(read.named("figcaption")) == len(images)


# What it says -------------------------------------------------------------------------------------


def test_the_numbers_are_those_of_the_validation(held: ReportedVariable, page: str) -> None:
    found, read = held.found, PageReader(page)
    rows = read.facts
    rmse = [run["rmse"] for run in found.runs]
    each = [found.metrics["rmse"], min(rmse), max(rmse)]
    assert rows["root mean square error"] == [f"{value:.4g} K" for value in each]
    assert rows["90 %"] == [f"{100 * found.calibration.observed[8]:.3g} %"]
    assert "seconds" not in read.text
    share = f"{100 * found.metrics['rmse'] / found.spread:.3g} % of the spread of the data"
    assert share in read.text
    assert f"({found.spread:.4g} K)" in read.text
    assert "In 2 hold-outs" in read.text
    assert {"inputs", "seed", EVIL} <= set(read.texts)


def test_levels_stand_with_their_settings_and_how_they_came_about(
    held: ReportedVariable, page: str
) -> None:
    model = held.found.model
    rows = PageReader(page).facts
    error = model.errors[model.dims.index("time")]
    size = model.axis_of("time").size
    assert rows["time"][0].startswith(f"{size}: 2020-01-")
    assert rows["time"][1:4] == ["matern32", "4 days", "0.001"]
    assert rows["time"][4] == f"{error:.4g} K"
    assert rows["time"][5] == f"{100 * error / held.found.spread:.3g} %"
    assert rows["time"][6] == "given"
    (choice,) = held.tried.of(EVIL)
    assert rows[EVIL][6] == f"from {len(choice.tried)}, on slices left out"
    assert rows[EVIL][2].endswith(EVIL)  # sigma in its units


def test_a_model_has_no_hold_outs_and_nothing_that_was_tried() -> None:
    given: dict[str, Any] = {"kernel": "linear", "ridge": 0.0}
    line = Grid(np.sin(np.arange(12.0)), (axis_of("x", np.arange(12.0)),), "a", {})
    model = fit(line, **given)
    other = Grid(np.sin(np.arange(9.0) + 0.5), (axis_of("x", np.arange(9.0) + 0.5),), "a", {})
    read = PageReader(
        make_page([ReportedVariable(validate_model(model, other, evidence=True))], FROM)
    )
    assert "The model was compared with 9 cells." in read.text
    assert "does not keep what was tried" in read.text
    rows = read.facts
    assert rows["x"][1:4] == ["linear spline", "-", "0"]
    assert "chosen" not in read.texts
    assert len(read.named("img")) == 1 + 1 + 2


def test_numbers_that_there_are_none_of_are_said_to_be_unknown() -> None:
    model = fit(np.sin(np.arange(9.0)), {"x": np.arange(9.0)}, kernel="linear", ridge=0.0)
    nothing = Grid(np.array([np.nan]), (axis_of("x", [0.5]),), "values")
    found = validate_model(model, nothing, evidence=True)
    read = PageReader(make_page([ReportedVariable(found)], FROM))
    rows = read.facts
    assert rows["root mean square error"] == ["not known"]
    assert rows["cells within the 90 % error bars"] == ["not known"]
    assert not re.search(r"\bnan\b", read.text)
    assert "No cell has a truth that is known" in read.text
    assert "90 %" not in rows
    assert read.named("img") == []


# How large it is ----------------------------------------------------------------------------------


def test_pictures_are_stored_less_sharply_before_they_are_left_out(
    held: ReportedVariable, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Quality | None, ...]] = []

    def page_of(_: Any, __: Any, quality: Quality, shown: int | None = None) -> str:
        asked.append((quality, shown))
        return "x" * (LARGEST + 1 if shown != 1 else LARGEST)

    monkeypatch.setattr(pages, "_page", page_of)
    assert len(make_page([held, held, held], FROM)) == LARGEST
    *tried, second, last = asked
    assert tried == [(quality, None) for quality in QUALITIES]
    assert (second, last) == ((QUALITIES[-1], 2), (QUALITIES[-1], 1))


def test_a_page_without_pictures_says_so(
    held: ReportedVariable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(illustrations, "encode_figure", lambda *_: b"x" * 30_000)
    monkeypatch.setattr(pages, "LARGEST", 500_000)
    read = PageReader(make_page([held, held], FROM))
    assert "Pictures are left out" in read.text
    assert len(read.named("img")) == 8
    assert len([row for row in read.rows if row and row[0] == "bias"]) == 2


# In a browser -------------------------------------------------------------------------------------

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run")
FLAGS += ("--disable-background-networking", "--disable-component-update", "--disable-sync")
FLAGS += ("--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr")

FRAME = """<!DOCTYPE html><body><iframe width="{width}" height="800" frameborder="0"
srcdoc="{page}"></iframe><script>addEventListener("load", () => {{
const frame = document.querySelector("iframe"), page = frame.contentDocument;
const loaded = frame.contentWindow.performance.getEntriesByType("resource").map(e => e.name);
document.title = JSON.stringify({{
  room: frame.clientWidth, wide: page.documentElement.scrollWidth, images: page.images.length,
  seen: [...page.images].filter(image => image.complete && image.naturalWidth > 0).length,
  loaded: loaded.filter(name => !name.startsWith("data:")), heading: page.title }}); }});
</script></body>"""


def browse(page: str, width: int, folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Return what a browser says of a page in a frame, and the lines of its console."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if browser is None:
        pytest.skip("there is no chromium to look at the page with")
    (folder / "frame.html").write_text(FRAME.format(width=width, page=escape(page)))
    ended = subprocess.run(
        [
            browser,
            *FLAGS,
            f"--user-data-dir={folder / 'profile'}",
            "--dump-dom",
            (folder / "frame.html").as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    (title,) = re.findall(r"<title>(.*?)</title>", ended.stdout.partition("srcdoc")[0])
    console = [line for line in ended.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(unescape(title)), console


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_a_browser_shows_all_of_the_page_within_its_width(
    page: str, width: int, tmp_path: Path
) -> None:
    told, console = browse(page, width, tmp_path)
    assert told["room"] == width
    assert told["wide"] <= width
    assert told["seen"] == told["images"] == 8
    assert told["heading"] == f"Validation of {EVIL}"
    assert told["loaded"] == []
    assert console == []


@pytest.mark.slow
def test_the_browser_would_tell_of_a_wide_page_and_of_what_it_loads(tmp_path: Path) -> None:
    wide = "<p style='width:900px'>a</p><img src='http://example.invalid/a.png'>"
    told, console = browse(f"<title>t</title>{wide}<script>nothing()</script>", 390, tmp_path)
    assert told["wide"] >= 900
    assert told["loaded"] == ["http://example.invalid/a.png"]
    assert "nothing is not defined" in "".join(console)
