"""Hidden names stand for their target, however long its name is."""

from __future__ import annotations

from pathlib import Path

from written_folders import names_in

from dkrls_cli.files.output.atomic import atomic_write
from dkrls_cli.files.output.locks import lock_file
from dkrls_cli.files.output.names import hidden_beside


def test_a_hidden_name_stands_for_its_target(tmp_path: Path) -> None:
    assert hidden_beside(tmp_path / "a.nc", ".x") == tmp_path / ".a.nc.x"
    assert len(hidden_beside(tmp_path / ("a" * 250), ".x").name) < 100


def test_long_names_have_short_temporary_ones(tmp_path: Path) -> None:
    target = tmp_path / ("n" * 250)
    with lock_file(target, 0.0, lambda _: None), atomic_write(target, overwrite=False) as part:
        part.write_text("x")
    assert names_in(tmp_path) == {target.name}
