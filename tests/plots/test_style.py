"""The door to matplotlib: sizes, refusals before any work, and files without a date."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dkrls_cli.errors import OutputError, SettingError
from dkrls_cli.plots import style
from dkrls_cli.plots.style import (
    SUFFIXES,
    check_drawable,
    encode_figure,
    house_style,
    new_figure,
    picture_kind,
    plain_text,
    write_figure,
)


@pytest.fixture
def _matplotlib() -> None:
    pytest.importorskip("matplotlib", reason="drawing needs the extra plot")


drawing = pytest.mark.usefixtures("_matplotlib")


def small() -> Any:
    figure = new_figure(40, 30)
    figure.subplots().plot([1, 2], [3, 1], label="a")
    return figure


# Refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["race.txt", "race", "race.jpg", ".png", "a.png.gz"])
def test_another_suffix_is_refused(tmp_path: Path, name: str) -> None:
    for refuse in (
        check_drawable,
        lambda path: write_figure(lambda: pytest.fail("made"), path, overwrite=True),
    ):
        with pytest.raises(SettingError, match=r"Expected a name that ends in .png, .svg or .pdf"):
            refuse(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".PNG"])
def test_the_suffix_names_the_format(suffix: str) -> None:
    assert picture_kind(Path(f"a.b{suffix}")) == suffix.lower()[1:]


def test_without_matplotlib_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for refuse in (
        check_drawable,
        lambda path: write_figure(lambda: pytest.fail("made"), path, overwrite=True),
    ):
        with pytest.raises(OutputError, match=r"installed. Try pip install 'dkrls-cli\[plot\]'"):
            refuse(tmp_path / "a.png")


@drawing
def test_a_picture_that_exists_is_refused(tmp_path: Path) -> None:
    there = tmp_path / "a.png"
    there.write_bytes(b"old")
    with pytest.raises(OutputError, match="exists already"):
        write_figure(small, there, overwrite=False)
    assert there.read_bytes() == b"old"


@drawing
def test_a_failure_leaves_the_old_picture_and_nothing_else(tmp_path: Path) -> None:
    there = tmp_path / "a.png"
    there.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError):
        write_figure(lambda: 1 / 0, there, overwrite=True)
    assert there.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [there]


# Files --------------------------------------------------------------------------------------------


@drawing
@pytest.mark.parametrize(
    ("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".PDF", b"%PDF")]
)
def test_equal_figures_give_equal_files_without_a_date(
    tmp_path: Path, suffix: str, start: bytes
) -> None:
    one, two = (tmp_path / f"{name}{suffix}" for name in "ab")
    for path in (one, two):
        write_figure(small, path, overwrite=False)
    written = one.read_bytes()
    assert written == two.read_bytes()
    assert written.startswith(start)
    assert sorted(tmp_path.iterdir()) == [one, two]
    assert not any(word in written for word in (b"dc:date", b"CreationDate", b"Matplotlib v"))


@drawing
def test_sizes_are_in_millimetres() -> None:
    content = encode_figure(lambda: new_figure(127, 25.4), "png")
    width, height = (int.from_bytes(content[at : at + 4]) for at in (16, 20))
    assert (width, height) == (5 * style.DOTS, style.DOTS)


@drawing
def test_settings_of_matplotlib_are_the_house_s_inside_and_the_user_s_outside() -> None:
    import matplotlib as mpl

    with mpl.rc_context({"font.size": 31.0, "axes.facecolor": "red"}):
        before = dict(mpl.rcParams)
        with house_style():
            assert mpl.rcParams["font.size"] == 8.0
            assert mpl.rcParams["axes.facecolor"] == "white"
        assert dict(mpl.rcParams) == before


@drawing
def test_texts_of_files_are_drawn_as_they_are() -> None:
    def named() -> Any:
        figure = new_figure(60, 40)
        text = plain_text("a_b^c $\\frac$ {x}%\x1b\n 温")
        figure.subplots().set_title(text)
        return figure

    assert plain_text("a\n$b\x1b") == "a \\$b"
    assert encode_figure(named, "png").startswith(b"\x89PNG")  # and no warning


@pytest.mark.slow
@drawing
def test_no_screen_and_no_list_of_figures_are_needed(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from dkrls_cli.plots.style import new_figure, write_figure\n"
        f"write_figure(lambda: new_figure(6, 4), Path(r'{tmp_path / 'a.png'}'), overwrite=False)\n"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
