"""Plain matrices of numbers as streams."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from dkrls_cli.bench.streams.matrix import is_matrix, read_matrix
from dkrls_cli.errors import InputError


def test_a_matrix_is_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "m.txt"
    path.write_text("1 2.5 3\n\n4 5 6e1\n7 8 9\n")
    assert is_matrix(str(path))
    grid = read_matrix(str(path))
    assert grid.dims == ("time", "series")
    assert grid.values.tolist() == [[1, 2.5, 3], [4, 5, 60], [7, 8, 9]]


def test_a_gzipped_matrix_is_read(tmp_path: Path) -> None:
    path = tmp_path / "m.DAT.gz"
    path.write_bytes(gzip.compress(b"\n1 2\n3 4\n"))
    assert is_matrix(str(path))
    assert read_matrix(str(path)).values.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "1 2\n"),
        ("a.txt", "time,a,b\n0,1,2\n"),
        ("a.txt", "1\n2\n"),
        ("a.txt", "one two\n1 2\n"),
        ("a.txt", ""),
    ],
)
def test_other_files_are_not_matrices(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert not is_matrix(str(tmp_path / name))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1 2\n3\n4 5", r"Row 2 of .* has 1 numbers, the first 2"),
        ("1 2\n3 4 5\n", r"Row 2 of .* has 3 numbers"),
        ("1 2\n\n3 x\n", r"Line 3 of .* is not all numbers"),
    ],
)
def test_uneven_rows_and_words_are_refused(text: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_text(text)
    with pytest.raises(InputError, match=reason):
        read_matrix(str(tmp_path / "m.txt"))
