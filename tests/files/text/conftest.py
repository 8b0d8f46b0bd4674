"""Tables as files and on standard input, for the tests of what reads them."""

import io
import sys

import pytest

from dkrls_cli.files.text.tables import read_table


@pytest.fixture(params=[0, 10**9], ids=["at once", "by row"])
def large(request, monkeypatch):
    """Let pandas split every table, and none: nobody may see a difference."""
    monkeypatch.setattr("dkrls_cli.files.text.tables.LARGE", request.param)


@pytest.fixture
def read(tmp_path, large):
    """Read a text as if it were a file."""

    def from_text(text, *args, name="table.csv", **options):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_table(str(path), *args, **options)

    return from_text


@pytest.fixture
def pipe(monkeypatch):
    """Put bytes on standard input."""

    def bytes_on_stdin(data):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return bytes_on_stdin
