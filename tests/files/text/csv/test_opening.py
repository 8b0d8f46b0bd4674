"""Tables are opened however they come, and what cannot be read is explained."""

import gc
import gzip
import io
import sys
from types import SimpleNamespace

import pytest

from dkrls_cli.errors import InputError
from dkrls_cli.files.text.csv import opening as module
from dkrls_cli.files.text.csv.opening import open_text, read_bytes, source_name, unzip_bytes


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_text_is_unzipped_and_loses_its_byte_order_mark(tmp_path, pack):
    path = tmp_path / "t"
    path.write_bytes(pack("é\r\nb".encode("utf-8-sig")))
    with open_text(str(path)) as text:
        assert list(text) == ["é\r\n", "b"]
    assert unzip_bytes(read_bytes(str(path))) == "é\r\nb".encode()


def test_standard_input_is_read_and_stays_open(monkeypatch, tmp_path):
    (tmp_path / "t").write_text("a,b")
    for whole in (True, False):
        with open(tmp_path / "t", encoding="utf-8") as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            if whole:
                assert read_bytes("-") == b"a,b"
            else:
                with open_text("-") as text:
                    assert text.read() == "a,b"
                del text
                gc.collect()
            assert not stdin.buffer.closed


def test_a_closed_standard_input_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    for read in (read_bytes, lambda path: open_text(path).__enter__()):
        with pytest.raises(InputError, match="standard input is closed"):
            read("-")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"a\xe9b", r"not UTF-8 text \(byte 0xe9\)"),
        (gzip.compress(b"abc" * 99, mtime=0)[:-9], "is damaged"),
        (b"\x1f\x8bno", "is damaged"),
    ],
    ids=["latin", "cut", "nonsense"],
)
def test_what_cannot_be_read_is_explained(tmp_path, data, words):
    path = tmp_path / "t.csv"
    path.write_bytes(data)
    expected = pytest.raises(InputError, match=f"'{path}' is .*{words.removeprefix('is ')}")
    with expected, open_text(str(path)) as text:
        text.read()


def test_paths_that_cannot_be_opened_are_named(tmp_path):
    for read in (read_bytes, lambda path: open_text(path).__enter__()):
        with pytest.raises(InputError, match=r"There is no file '.*absent'"):
            read(str(tmp_path / "absent"))
        with pytest.raises(InputError, match=r"cannot be read \(Is a directory\)"):
            read(str(tmp_path))


def test_a_broken_output_is_no_fault_of_the_input(tmp_path):
    (tmp_path / "t").write_text("a")
    with pytest.raises(BrokenPipeError), open_text(str(tmp_path / "t")):
        raise BrokenPipeError


def test_a_source_is_named_in_messages():
    assert source_name("-") == "standard input"
    assert source_name("a.csv") == "'a.csv'"


def test_a_compressed_table_unfolds_to_a_hundred_times_its_size_at_most(monkeypatch):
    monkeypatch.setattr(module, "_LEAST_UNZIPPED", 1000)
    table = b"x,v\n" + b"".join(b"%d,%d\n" % (i, i * 7919 % 1013) for i in range(3000))
    assert unzip_bytes(gzip.compress(table)) == table
    for size, refused in ((1000, False), (10**5, True)):
        bomb = gzip.compress(b"0" * size)
        if refused:
            with pytest.raises(InputError, match="compressed bytes hold more than"):
                unzip_bytes(bomb)
            with pytest.raises(InputError, match="Unzip the file first"):
                module.text_of(io.BytesIO(bomb)).__enter__()
        else:
            assert len(unzip_bytes(bomb)) == size


def test_a_device_that_never_ends_is_not_read(tmp_path):
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    for read in (read_bytes, lambda path: open_text(path).__enter__()):
        with pytest.raises(InputError, match="is a device"):
            read(str(tmp_path / "zero.csv"))
    assert read_bytes("/dev/null") == b""


def test_a_table_that_does_not_fit_the_memory_is_not_read(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_bytes(b"x" * 1000)
    for room, refused in ((4000.0, False), (3999.0, True)):
        monkeypatch.setattr(module, "available_bytes", lambda room=room: room)
        for path in (str(tmp_path / "a.csv"), "-"):
            stdin = SimpleNamespace(buffer=io.BytesIO(b"x" * 1000))
            monkeypatch.setattr(sys, "stdin", stdin)
            if refused:
                with pytest.raises(InputError, match="too much for the memory"):
                    read_bytes(path)
            else:
                assert len(read_bytes(path)) == 1000
