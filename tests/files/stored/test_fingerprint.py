"""Files that have changed are told from those that have not."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from dkrls_cli.errors import InputError
from dkrls_cli.files.stored.fingerprint import changes, content_hash, fingerprint


def made(path: Path, text: str = "abc", when: int = 10**9) -> str:
    path.write_text(text)
    os.utime(path, ns=(when, when))
    return str(path)


def test_a_fingerprint_is_name_size_and_time(tmp_path: Path) -> None:
    path = made(tmp_path / "a.nc")
    sample = hashlib.sha256(b"abc").hexdigest()
    known = {"name": "a.nc", "size": 3, "mtime_ns": 10**9, "sample": sample}
    assert fingerprint([path]) == [known]
    found = fingerprint([path], contents=True)[0]
    assert found["sha256"] == hashlib.sha256(b"abc").hexdigest()


def test_files_that_differ_are_named(tmp_path: Path) -> None:
    one, other = made(tmp_path / "a.nc"), made(tmp_path / "b.nc")
    old = fingerprint([one, other])
    assert changes(old, [one, other]) == []
    made(tmp_path / "b.nc", "abd", 10**9 + 1)
    assert changes(old, [one, other]) == ["b.nc has other contents, or was written again"]
    assert changes(old, [one]) == ["b.nc is no longer there"]
    assert changes(old[:1], [one, other]) == ["b.nc is new"]
    assert changes(old, [other, one])[0] == "b.nc is in the place of a.nc"


def test_contents_decide_if_they_are_known(tmp_path: Path) -> None:
    path = made(tmp_path / "a.nc")
    old, whole = fingerprint([path]), fingerprint([path], contents=True)
    made(tmp_path / "a.nc", when=5)
    assert changes(whole, [path]) == []
    assert len(changes(old, [path])) == 1
    made(tmp_path / "a.nc", "abd", 5)
    assert len(changes(whole, [path])) == 1
    made(tmp_path / "a.nc", "abcd")  # of another size, at the same time
    assert len(changes(whole, [path])) == 1


def test_a_store_is_all_of_its_members(tmp_path: Path) -> None:
    store = tmp_path / "a.zarr"
    (store / "t").mkdir(parents=True)
    made(store / ".zgroup", "{}", 7)
    made(store / "t" / "0.0", "xyz", 9)
    whole = fingerprint([str(store)], contents=True)
    hashes = {"sha256": "", "sample": ""}
    assert whole[0] | hashes == {"name": "a.zarr", "size": 5, "mtime_ns": 9, **hashes}
    first = content_hash(str(store))
    (store / "t" / "0.0").rename(store / "t" / "0.1")
    assert content_hash(str(store)) != first
    (store / "t" / "0.1").rename(store / "t" / "0.0")
    os.utime(store / ".zgroup", ns=(99, 99))  # at another time, the hash of all decides
    assert changes(whole, [str(store) + os.sep]) == []
    made(store / "t" / "0.0", "xyw", 9)
    assert len(changes(whole, [str(store)])) == 1


def test_a_change_that_keeps_size_and_time_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    whole = np.random.default_rng(0).bytes(2**20)
    path.write_bytes(whole)
    os.utime(path, ns=(7, 7))
    old = fingerprint([str(path)])
    assert changes(old, [str(path)]) == []
    between = (2**20 - 2**12) // 63 + 1  # no run of so many bytes is without a sample
    for start in (0, 1234, 2**20 - between):
        path.write_bytes(whole[:start] + bytes(between) + whole[start + between :])
        os.utime(path, ns=(7, 7))
        assert changes(old, [str(path)]) == ["a.nc has other contents, or was written again"]
    earlier = [{key: one[key] for key in one if key != "sample"} for one in old]
    assert changes(earlier, [str(path)]) == []  # as earlier programs have recorded it


def test_a_store_is_sampled_as_well(tmp_path: Path) -> None:
    store = tmp_path / "a.zarr"
    store.mkdir()
    for number in range(200):
        made(store / str(number), f"{number:05}", 9)
    old = fingerprint([str(store)])
    assert changes(old, [str(store)]) == []
    for number in range(40):  # a fifth of all members, with their old times
        made(store / str(number), f"{number:04}x", 9)
    assert len(changes(old, [str(store)])) == 1


def test_what_cannot_be_read_again_has_no_fingerprint(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Standard input can be read once only"):
        fingerprint(["-"])
    with pytest.raises(InputError, match="cannot be read"):
        fingerprint([str(tmp_path / "absent.nc")])
