"""Options are written to a file that gives them back, and nothing else of it changes."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from shell import dkrls, refusal

from dkrls_cli.cli.saveconfig import replace_table, table_text, value_text


def test_saved_options_give_the_same_model_again(globe: Path, tmp_path: Path) -> None:
    from dkrls_cli import load_model

    saved, one, other = tmp_path / "run.toml", tmp_path / "a.npz", tmp_path / "b.npz"
    words = ["--sigma", "lat=30", "--sigma", "time=20D", "--kernel", "gaussian", "--float32"]
    words += ["--threads", "1", "--noise", "joint", "--missing", "model"]
    told = dkrls("fit", globe, "-o", one, *words, "--save-config", saved)
    assert f"Note: options written to {saved}." in told.stderr
    assert tomllib.loads(saved.read_text()) == {
        "fit": {
            "output": str(one),
            "kernel": "gaussian",
            "sigma": ["lat=30", "time=20D"],
            "noise": "joint",
            "float32": True,
            "threads": 1,
        }
    }
    dkrls("fit", globe, "--config", saved, "-o", other)
    a, b = load_model(one), load_model(other)
    assert a.levels == b.levels
    assert (a.predict().values == b.predict().values).all()
    again = tmp_path / "again.toml"
    dkrls("fit", globe, "--config", saved, "--overwrite", "--save-config", again)
    assert again.read_text() == saved.read_text()


def test_saving_replaces_its_own_table_alone(globe: Path, tmp_path: Path) -> None:
    (path := tmp_path / "run.toml").write_text(
        "# mine\n[predict]  # of answers\nstd = true\n\n[fit]\nridge = 1\n[fit.sigma]\nlat = 3\n"
        "\n[regrid]\nfolds = 3\n"
    )
    before = path.read_text()
    words = ("fit", globe, "--dry-run", "--sigma", "7", "--save-config", path)
    line = refusal(*words, code=1)
    assert f"'{path}' has a table [fit]. --overwrite replaces it" in line
    assert path.read_text() == before
    dkrls(*words, "--overwrite")
    assert path.read_text() == (
        '# mine\n[predict]  # of answers\nstd = true\n\n[fit]\nsigma = "7"\ndry-run = true\n'
        "\n[regrid]\nfolds = 3\n"
    )
    dkrls("validate", globe, "--holdout", "0.3", "--repeats", "1", "--save-config", path)
    assert tomllib.loads(path.read_text())["validate"] == {"holdout": "0.3", "repeats": 1}
    assert path.read_text().startswith("# mine\n[predict]  # of answers\n")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ridge = 3\n", "has ridge for all commands, which this one does not have now"),
        ("fit.ridge = 3\n", "cannot be changed safely"),
        ('x = """\n[fit]\n"""\n', "cannot be changed safely"),
        ("x = [\n", "is not TOML"),
    ],
)
def test_a_file_that_would_not_give_the_same_back_is_not_changed(
    globe: Path, tmp_path: Path, text: str, reason: str
) -> None:
    (path := tmp_path / "run.toml").write_text(text)
    words = ("fit", globe, "--dry-run", "--sigma", "7", "--save-config", path, "--overwrite")
    assert reason in refusal(*words, code=2)
    assert path.read_text() == text


def test_options_are_saved_only_where_they_can_be_and_the_work_was_done(
    globe: Path, tmp_path: Path
) -> None:
    words = ("fit", globe, "--dry-run", "--save-config")
    assert "does not end in .toml" in refusal(*words, tmp_path / "a.npz", code=2)
    assert "is not a folder" in refusal(*words, tmp_path / "no" / "a.toml")
    refusal(*words, tmp_path / "a.toml", "--sigma", "nonsense=3", code=2)
    assert not (tmp_path / "a.toml").exists()
    limits = ("--holdout", "0.3", "--repeats", "1", "--fail-above", "rmse=0")
    told = dkrls("validate", globe, *limits, "--save-config", tmp_path / "a.toml", "-q", code=3)
    assert "options written" not in told.stderr
    assert "fail-above" in (tmp_path / "a.toml").read_text()


@pytest.mark.parametrize(
    "value",
    [
        *("", "a 'b' \"c\" \\ \n\t\x00\x7f é 𝄞", 3, -0.1, 1e-300, 1e22, True, False, float("inf")),
        *([], ["a", 1, [2.5]], {"lat": 1, "b c": ["x"]}),
    ],
)
def test_values_are_written_as_toml_reads_them(value: Any) -> None:
    assert tomllib.loads(table_text(["a", "b"], {"x": value})) == {"a": {"b": {"x": value}}}
    assert "\n" not in value_text(value)


def test_a_table_is_replaced_with_those_within_it_but_for_some() -> None:
    text = "[bench]\na = 1\n[bench.x]\nb = 2\n[bench.real]\nc = 3\n[benches]\nd = 4\n"
    new = replace_table(text, ["bench"], "[bench]\na = 9\n", keep=["real"])
    assert new == "[bench]\na = 9\n\n[bench.real]\nc = 3\n[benches]\nd = 4\n"
    assert replace_table("", ["fit"], "[fit]\n") == "[fit]\n"
    assert replace_table("a = 1", ["fit"], "[fit]\n") == "a = 1\n\n[fit]\n"
