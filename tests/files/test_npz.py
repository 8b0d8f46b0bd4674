"""A model file is what was written, or refused: nothing of it is believed unchecked."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dkrls_cli.errors import ModelFileError, OutputError
from dkrls_cli.files import npz

HEADER = {"name": "t", "program": "dkrls 0", "levels": [1, 2]}
ARRAYS = {
    "values": np.arange(6.0).reshape(2, 3),
    "mask": np.array([True, False]),
    "single": np.array([0.5], np.float32),
    "scalar": np.array(3.0),
    "empty": np.empty((0, 4)),
    "count": np.array([1, 2], np.int16),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    npz.write(tmp_path / "m.npz", HEADER, ARRAYS)
    return tmp_path / "m.npz"


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path: Path, compress: int = zipfile.ZIP_STORED, **changes: bytes | None) -> Path:
    """Change some members of a model file, which has no digest then; None takes one out."""
    unsigned = {"header.npy": header_of(path), "digest.npy": None}
    found = members(path) | unsigned | {f"{name}.npy": data for name, data in changes.items()}
    return put(path, found, compress)


def put(path: Path, found: dict[str, bytes | None], compress: int = zipfile.ZIP_STORED) -> Path:
    """Write members of a model file."""
    with zipfile.ZipFile(path, "w", compress) as archive:
        for name, data in found.items():
            if data is not None:
                archive.writestr(name, data)
    return path


def npy(array: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def header_of(path: Path, **changes: Any) -> bytes:
    text = np.load(io.BytesIO(members(path)["header.npy"])).tobytes()
    header = {key: value for key, value in json.loads(text).items() if key != "digest"}
    return npy(np.frombuffer(json.dumps(header | changes).encode(), np.uint8))


def test_a_model_file_is_read_back_as_it_was_written(path: Path) -> None:
    header, arrays = npz.read(path)
    assert list(header)[:2] == ["format", "version"]
    assert {key: header[key] for key in HEADER} == HEADER
    assert list(arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape)
        assert not arrays[name].flags.writeable
        assert arrays[name].flags.c_contiguous


def test_numpy_reads_the_file_too_and_needs_no_pickle(path: Path) -> None:
    with np.load(path, allow_pickle=False) as file:
        np.testing.assert_array_equal(file["values"], ARRAYS["values"])
        assert json.loads(file["header"].tobytes())["version"] == npz.VERSION


def test_equal_models_are_equal_bytes(path: Path, tmp_path: Path) -> None:
    npz.write(tmp_path / "again.npz", HEADER, ARRAYS)
    assert (tmp_path / "again.npz").read_bytes() == path.read_bytes()


def test_a_file_is_overwritten_only_if_allowed(path: Path, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="exists already"):
        npz.write(path, HEADER, {}, overwrite=False)
    npz.write(path, HEADER, {})
    assert npz.read(path)[1] == {}
    with pytest.raises(OutputError, match="no folder"):
        npz.write(tmp_path / "absent" / "m.npz", HEADER, {})


def test_what_cannot_be_written_is_named_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OutputError, match=r"m.npz' cannot be written \(No space left on device\)"):
        npz.write(tmp_path / "m.npz", HEADER, ARRAYS)
    assert not list(tmp_path.iterdir())


def test_objects_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="pickle"):
        npz.write(tmp_path / "m.npz", HEADER, {"bad": np.array([{}], object)})
    assert not list(tmp_path.iterdir())


def test_a_file_holds_the_header_and_its_arrays_and_no_more(tmp_path: Path) -> None:
    npz.write(tmp_path / "m.npz", HEADER, ARRAYS)
    with np.load(tmp_path / "m.npz") as members:
        assert sorted(members) == sorted(["header", "digest", *ARRAYS])


VALUES = ARRAYS["values"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"header": None}, "it has no header"),
        ({"header": npy(np.frombuffer(b"[1]", np.uint8))}, "header is of another format"),
        ({"header": npy(np.frombuffer(b'{"format": "x"}', np.uint8))}, "of another format"),
        ({"header": npy(np.frombuffer(b"nonsense", np.uint8))}, "not a model file"),
        ({"values": None}, "values.npy"),
        ({"values": npy(VALUES[:1])}, "array 'values' is not what the header says"),
        ({"values": npy(VALUES.T)}, "array 'values' is not what the header says"),
        ({"values": npy(VALUES.astype(np.int64))}, "array 'values' is not what the header says"),
        ({"values": npy(np.full((2, 3), np.nan))}, "holds numbers that are not finite"),
        ({"values": npy(np.full((2, 3), np.inf))}, "holds numbers that are not finite"),
        ({"values": npy(VALUES) + b"x" * 2**16}, "not of the size"),
        ({"values": npy(VALUES)[-48:]}, "not of the size"),
        ({"values": b"x" * 176}, "not a model file"),
    ],
)
def test_a_damaged_file_is_refused(path: Path, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(ModelFileError, match=reason):
        npz.read(rewrite(path, **changes))


def test_the_order_of_bytes_in_memory_does_not_matter(path: Path) -> None:
    found = npz.read(rewrite(path, values=npy(np.asfortranarray(VALUES))))[1]["values"]
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, VALUES)


def test_compressed_members_are_refused(path: Path) -> None:
    with pytest.raises(ModelFileError, match="is compressed"):
        npz.read(rewrite(path, zipfile.ZIP_DEFLATED))


def test_a_small_file_that_holds_a_large_header_is_refused_at_once(path: Path) -> None:
    """As a compressed member, 20 MB of a header take 20 kB."""
    text = np.frombuffer(b"[" + b"[]," * 7_000_000 + b"[]]", np.uint8)
    rewrite(path, zipfile.ZIP_DEFLATED, header=npy(text))
    assert path.stat().st_size < 100_000
    with pytest.raises(ModelFileError, match="members are larger than the file"):
        npz.read(path)


# ---- the digest


def test_a_file_that_was_changed_is_told_from_one_of_another_version(path: Path) -> None:
    changed: dict[str, bytes | None] = {**members(path), "values.npy": npy(VALUES + 1e-9)}
    with pytest.raises(ModelFileError, match="is damaged, or was changed after it was written"):
        npz.read(put(path, changed))


@pytest.mark.parametrize(
    "name", ["header", "digest", *(name for name in ARRAYS if name != "empty")]
)
def test_every_member_is_part_of_the_digest(path: Path, name: str) -> None:
    """The bytes are changed so that the checksum of the zip format holds again."""
    changed: dict[str, bytes | None] = {**members(path)}
    data = bytearray(members(path)[f"{name}.npy"])
    data[data.rindex(b"dkrls 0") if name == "header" else len(data) - 1] ^= 1
    changed[f"{name}.npy"] = bytes(data)
    with pytest.raises(ModelFileError, match="is damaged, or was changed after it was written"):
        npz.read(put(path, changed))


def test_a_digest_that_was_taken_out_is_missed_and_files_without_one_are_read(path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"digest\.npy"):
        npz.read(put(path, {**members(path), "digest.npy": None}))
    npz.write(path, HEADER, ARRAYS)
    assert list(npz.read(rewrite(path))[1]) == list(ARRAYS)


# ---- hostile archives


def test_members_of_one_name_and_members_that_overlap_are_refused(path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("values.npy", npy(VALUES))
    with pytest.raises(ModelFileError, match="has a member twice"):
        npz.read(path)
    npz.write(path, HEADER, {"values": np.zeros(4000)})
    data = bytearray(path.read_bytes())
    for place in (20, 24):  # sizes in the list of members
        at = data.index(b"PK\x01\x02") + place
        data[at : at + 4] = (2**30).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match="members are larger than the file"):
        npz.read(path)


def test_an_encrypted_member_is_refused(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match="is compressed"):
        npz.read(path)


def test_a_list_of_too_many_members_is_not_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = path.read_bytes()
    listed = int.from_bytes(data[-22:][12:16], "little")
    monkeypatch.setattr(npz, "_LARGEST_LIST", listed)
    npz.read(path)
    monkeypatch.setattr(npz, "_LARGEST_LIST", listed - 1)
    with pytest.raises(ModelFileError, match="too many members"):
        npz.read(path)
    monkeypatch.setattr(npz, "_LARGEST_LIST", 10**6)
    large = b"PK\x06\x06" + bytes(36) + (10**6 + 1).to_bytes(8, "little") + bytes(8)
    path.write_bytes(data[:-22] + large + data[-22:])
    with pytest.raises(ModelFileError, match="too many members"):
        npz.read(path)


@pytest.mark.parametrize(
    "dtype", ["<U100000000", "|V2000000000", "O", "<c16", "<M8[s]", "<f16", "f8,i4", 7, None]
)
def test_types_beyond_a_short_list_are_refused(path: Path, dtype: Any) -> None:
    arrays = {"values": [dtype, [2, 3]]}
    with pytest.raises(ModelFileError, match=r"arrays\.values is of a type that no model has"):
        npz.read(rewrite(path, header=header_of(path, arrays=arrays)))


@pytest.mark.parametrize("shape", [[-1, -6], [2.0, 3], [True], ["2", 3], [2**63], [1] * 33])
def test_shapes_that_are_none_are_refused(path: Path, shape: Any) -> None:
    with pytest.raises(ModelFileError, match=r"arrays\.values has no such shape"):
        npz.read(rewrite(path, header=header_of(path, arrays={"values": ["<f8", shape]})))


@pytest.mark.parametrize(
    "arrays", [7, [], None, {"header": ["|u1", [3]]}, {"digest": ["|u1", [3]]}]
)
def test_arrays_are_an_object_of_other_names(path: Path, arrays: Any) -> None:
    with pytest.raises(ModelFileError, match="arrays is no object"):
        npz.read(rewrite(path, header=header_of(path, arrays=arrays)))
    with pytest.raises(ModelFileError, match=r"arrays\.values is no type and shape"):
        npz.read(rewrite(path, header=header_of(path, arrays={"values": arrays})))


@pytest.mark.parametrize(("depth", "refused"), [(60, None), (70, "nested"), (10**6, "too deeply")])
def test_a_header_is_not_nested_deeply(path: Path, depth: int, refused: str | None) -> None:
    text = header_text(path)[:-1] + b', "deep": ' + b"[" * depth + b"]" * depth + b"}"
    changed = rewrite(path, header=npy(np.frombuffer(text, np.uint8)))
    if refused is None:
        npz.read(changed)
    else:
        with pytest.raises(ModelFileError, match=refused):
            npz.read(changed)


def header_text(path: Path) -> bytes:
    text: bytes = np.load(io.BytesIO(header_of(path))).tobytes()
    return text


@pytest.mark.parametrize(
    "header", [np.zeros(3), np.zeros((2, 2), np.uint8), np.array(1, np.uint8)], ids=str
)
def test_a_header_is_bytes(path: Path, header: Any) -> None:
    with pytest.raises(ModelFileError, match="its header is no text"):
        npz.read(rewrite(path, header=npy(header)))


def test_a_header_that_could_not_be_read_is_not_written(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(header_text(path)) + len(', "digest": "sha256"')
    monkeypatch.setattr(npz, "_LARGEST_HEADER", size + npz._LARGEST_MEMBER_HEADER)
    npz.write(tmp_path / "ok.npz", HEADER, ARRAYS)
    monkeypatch.setattr(npz, "_LARGEST_HEADER", size - 1 + npz._LARGEST_MEMBER_HEADER)
    with pytest.raises(OutputError, match="labels and attributes of the data take"):
        npz.write(tmp_path / "no.npz", HEADER, ARRAYS)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no such device")
def test_a_device_is_no_model() -> None:
    with pytest.raises(ModelFileError, match="is no file at all"):
        npz.read("/dev/zero")


def test_objects_are_not_read(path: Path) -> None:
    objects = np.array([[{}] * 3] * 2, object)
    with pytest.raises(ModelFileError, match="is not what the header says"):
        npz.read(rewrite(path, values=npy(objects, allow_pickle=True)))


def test_a_header_that_is_too_large_is_not_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(members(path)["header.npy"])
    monkeypatch.setattr(npz, "_LARGEST_HEADER", size)
    npz.read(path)
    monkeypatch.setattr(npz, "_LARGEST_HEADER", size - 1)
    with pytest.raises(ModelFileError, match="header is too large"):
        npz.read(path)


def test_another_version_is_refused_with_the_program_that_wrote_it(path: Path) -> None:
    words = r"of version 5; this program reads versions 1 to 4. Use .* \(dkrls 0\)"
    with pytest.raises(ModelFileError, match=words):
        npz.read(rewrite(path, header=header_of(path, version=5)))


@pytest.mark.parametrize("version", [0, "3", None, 3.5])
def test_versions_that_never_were_are_refused(path: Path, version: Any) -> None:
    with pytest.raises(ModelFileError, match=f"of version {version}; this program reads"):
        npz.read(rewrite(path, header=header_of(path, version=version)))


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_older_versions_are_read(path: Path, version: int) -> None:
    header, arrays = npz.read(rewrite(path, header=header_of(path, version=version)))
    assert header["version"] == version
    assert list(arrays) == list(ARRAYS)


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"There is no model file '.*absent'"):
        npz.read(tmp_path / "absent")
    for data in (b"", b"PK nonsense", b"hello"):
        (tmp_path / "x").write_bytes(data)
        with pytest.raises(ModelFileError, match="not a model file, or it is damaged"):
            npz.read(tmp_path / "x")
    with pytest.raises(ModelFileError, match="not a model file"):
        npz.read(tmp_path)


def test_half_a_file_is_refused(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(ModelFileError, match="damaged"):
        npz.read(path)


def test_model_files_are_told_from_others_by_their_first_bytes(path: Path, tmp_path: Path) -> None:
    assert npz.is_model_file(path)
    renamed = tmp_path / "m.NPZ"
    renamed.write_bytes(path.read_bytes()[:512])
    assert npz.is_model_file(renamed)
    for name, data in {
        "a.npy": path.read_bytes(),
        "b.npz": path.read_bytes()[4:],
        "c.npz": path.read_bytes().replace(b"dkrls-model", b"other-model"),
        "d.npz": path.read_bytes().replace(b"header.npy", b"beader.npy"),
        "e.npz": b"",
    }.items():
        (tmp_path / name).write_bytes(data)
        assert not npz.is_model_file(tmp_path / name)
    assert not npz.is_model_file(tmp_path / "none.npz")
