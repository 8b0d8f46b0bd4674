"""Pictures of races: what is drawn where, and that labels can be read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dkrls_cli.bench import plots
from dkrls_cli.bench.placement import nearest, overlaps, placed
from dkrls_cli.bench.plots import error_against_time, figure_of, spots_of
from dkrls_cli.errors import OutputError, SettingError

FRAME = np.array([0.0, 0.0, 1000.0, 700.0])


def row(method: str, seconds: Any, error: Any, **more: Any) -> dict[str, Any]:
    given = {"dataset": "paper-2d", "settings": "", "paper_seconds": None, "paper_error": None}
    return {"method": method, "seconds": seconds, "max_error": error, **given, **more}


def crowd(count: int) -> list[dict[str, Any]]:
    """A third of the methods close together, as slow and wrong ones are."""
    rng = np.random.default_rng(1)
    spread = np.where(np.arange(count) % 3, 3.0, 0.5)
    seconds, errors = 10 ** (rng.normal(size=(2, count)) * spread / 2)
    return [row("dkrls", 0.01, 1e-7)] + [
        row(f"method-{i}", t, e, paper_seconds=9 * t if i % 2 else None, paper_error=2 * e)
        for i, (t, e) in enumerate(zip(seconds, errors, strict=True))
    ]


# Labels -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("spread", [60, 300])
def test_labels_cover_no_other_and_stay_inside(seed: int, spread: int) -> None:
    rng = np.random.default_rng(seed)
    anchors = np.clip(rng.normal([500, 350], spread, (25, 2)), 5, [995, 695])
    sizes = np.column_stack([rng.uniform(40, 110, 25), np.full(25, 15.0)])
    boxes = placed(anchors, sizes, anchors, 6.0, FRAME)
    np.testing.assert_allclose(boxes[:, 2:] - boxes[:, :2], sizes)
    assert not np.triu(overlaps(boxes, boxes), 1).any()
    np.testing.assert_allclose(overlaps(boxes, FRAME[None])[:, 0], sizes.prod(axis=1))


def test_a_label_alone_is_right_beside_its_mark() -> None:
    anchor = np.array([[500.0, 350.0]])
    boxes = placed(anchor, np.array([[80.0, 16.0]]), anchor, 6.0, FRAME)
    np.testing.assert_allclose(boxes, [[506.0, 342.0, 586.0, 358.0]])


def test_a_label_at_the_edge_turns_inward() -> None:
    anchor = np.array([[990.0, 350.0]])
    boxes = placed(anchor, np.array([[80.0, 16.0]]), anchor, 6.0, FRAME)
    assert boxes[0, 2] <= 990


numbers = st.floats(-50, 50)
boxes_drawn = st.tuples(numbers, numbers, st.floats(0, 30), st.floats(0, 30)).map(
    lambda b: np.array([[b[0], b[1], b[0] + b[2], b[1] + b[3]]])
)


@given(boxes_drawn, boxes_drawn)
def test_shared_area_is_symmetric_and_at_most_the_smaller(one: Any, other: Any) -> None:
    shared = overlaps(one, other)[0, 0]
    assert shared == overlaps(other, one)[0, 0]
    areas = [float(np.prod(box[0, 2:] - box[0, :2])) for box in (one, other)]
    assert 0 <= shared <= min(areas) + 1e-9
    np.testing.assert_allclose(overlaps(one, one)[0, 0], areas[0])


@settings(max_examples=50)
@given(boxes_drawn, numbers, numbers)
def test_the_nearest_point_of_a_box_is_nearer_than_its_corners(
    box: Any, x: float, y: float
) -> None:
    anchor = np.array([[x, y]])
    reach = np.hypot(*(nearest(box, anchor) - anchor)[0])
    for corner in (box[0, :2], box[0, 2:], box[0, [0, 3]], box[0, [2, 1]]):
        assert reach <= np.hypot(*(corner - anchor[0])) + 1e-9


# What is drawn ------------------------------------------------------------------------------------


def test_what_has_no_finite_error_or_time_has_no_place() -> None:
    rows = [
        row("a", None, 1.0),
        row("b", 1.0, float("inf")),
        row("c", 1.0, None),
        row("d", 0.0, 1.0),
    ]
    assert [spot.place for spot in spots_of(rows)] == [None] * 4
    far = row("e", None, None, paper_seconds=3.0, paper_error=0.5)
    assert spots_of([far])[0].place == (3.0, 0.5)


def test_settings_tell_rows_of_a_method_apart() -> None:
    rows = [row("norma", 1, 1, settings="paper"), row("norma", 1, 1, settings="searched")]
    labels = [spot.label for spot in spots_of([*rows, row("klms", 1, 1, settings="paper")])]
    assert labels == ["norma, paper", "norma, searched", "klms"]
    assert len(spots_of([*rows, row("norma", 1, 1, settings="x" * 90)])[2].label) <= 32


def test_methods_differ_in_colour_or_mark_and_rows_of_one_in_neither() -> None:
    rows = [row(f"m{i}", 1, 1) for i in range(30)] + [row("m3", 2, 2), row("dkrls", 1, 1)]
    looks = [(spot.colour, spot.mark) for spot in spots_of(rows)]
    assert len(set(looks[:30])) == 30
    assert looks[30] == looks[3]
    assert looks[31][0] not in {colour for colour, _ in looks[:30]}


def test_another_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"race\.txt'. Expected a name that ends in .png, .svg"):
        error_against_time([], tmp_path / "race.txt")


def test_without_matplotlib_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plots, "find_spec", lambda name: None)
    with pytest.raises(SettingError, match=r"not installed. Try pip install 'dkrls-cli\[plot\]'"):
        error_against_time([], tmp_path / "race.png")


# With matplotlib ----------------------------------------------------------------------------------


@pytest.fixture
def _matplotlib() -> None:
    pytest.importorskip("matplotlib", reason="drawing needs the extra plot")


drawing = pytest.mark.usefixtures("_matplotlib")


def text_boxes(panel: Any) -> np.ndarray:
    return np.array([text.get_window_extent().extents for text in panel.texts])


@drawing
@pytest.mark.parametrize("count", [9, 24])
def test_no_label_covers_another_or_leaves_its_panel(count: int) -> None:
    panel = figure_of(crowd(count)).axes[0]
    boxes = text_boxes(panel)
    assert len(boxes) == count + 1
    assert not np.triu(overlaps(boxes, boxes), 1).any()
    areas = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    np.testing.assert_allclose(overlaps(boxes, np.array([panel.bbox.extents]))[:, 0], areas)


@drawing
def test_the_paper_is_hollow_in_the_colour_of_the_row() -> None:
    rows = [row("norma", 2.0, 0.5, paper_seconds=40.0, paper_error=1.05)]
    lines = figure_of(rows).axes[0].lines
    at = {tuple(line.get_xydata()[0]): line for line in lines if line.get_marker() != "None"}
    here, paper = at[2.0, 0.5], at[40.0, 1.05]
    assert paper.get_markerfacecolor() == "none"
    assert paper.get_markeredgecolor() == here.get_color() == here.get_markerfacecolor()


@drawing
def test_no_error_at_all_is_drawn_at_the_lower_edge() -> None:
    panel = figure_of([row("exact", 1.0, 0.0), row("linear", 2.0, 1e-3)]).axes[0]
    mark = next(line for line in panel.lines if line.get_marker() == "v")
    low, high = panel.get_ylim()
    assert low < mark.get_ydata()[0] < 1e-3 < high
    assert "no error at all" in [text.get_text() for text in panel.get_legend().get_texts()]


@drawing
def test_those_not_shown_are_named() -> None:
    panel = figure_of([row("lost", 1.0, float("nan")), row("linear", 2.0, 1e-3)]).axes[0]
    assert any(text.get_text().endswith("time: lost") for text in panel.texts)


@drawing
def test_every_dataset_has_a_panel() -> None:
    rows = [row("linear", 1.0, 1e-3, dataset=name) for name in ("paper-2d", "paper-3d", "cross")]
    panels = figure_of(rows).axes
    titles = [panel.get_title("left") for panel in panels if panel.axison]
    assert titles == ["paper-2d", "paper-3d", "cross"]


@drawing
@pytest.mark.parametrize(
    ("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".PDF", b"%PDF")]
)
def test_equal_rows_give_equal_files(tmp_path: Path, suffix: str, start: bytes) -> None:
    one, two = (tmp_path / f"{name}{suffix}" for name in "ab")
    for path in (one, two):
        error_against_time(crowd(4), path)
    assert one.read_bytes() == two.read_bytes()
    assert one.read_bytes().startswith(start)
    assert sorted(tmp_path.iterdir()) == [one, two]
    with pytest.raises(OutputError, match="exists already"):
        error_against_time(crowd(4), one, overwrite=False)


@drawing
@pytest.mark.parametrize("rows", [[], [row("lost", None, None)], [row("exact", 1.0, 0.0)]])
def test_few_rows_or_none_are_drawn_all_the_same(tmp_path: Path, rows: Any) -> None:
    error_against_time(rows, tmp_path / "race.png")
    assert (tmp_path / "race.png").stat().st_size > 1000


@drawing
def test_no_screen_and_no_state_are_needed(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from dkrls_cli.bench.plots import error_against_time\n"
        "rows = [{'dataset': 'd', 'method': 'm', 'seconds': 1, 'max_error': 1}]\n"
        f"error_against_time(rows, Path(r'{tmp_path / 'race.png'}'))\n"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
