"""Models of several variables share one file, and what is equal in them is stored once."""

import numpy as np
import pytest
import xarray as xr

from dkrls_cli import fit, load_model, load_models, save_models
from dkrls_cli.errors import InputError, ModelFileError, OutputError, SettingError
from dkrls_cli.files import npz as modelfile
from dkrls_cli.model.record import join_records
from dkrls_cli.model.saving import model_record


def two_models():
    x, y = np.linspace(0, 3, 15), np.linspace(0, 2, 12)
    values = np.outer(np.sin(x), np.cos(y))
    how = {"kernel": "gaussian", "sigma": 1.0, "ridge": 1e-6}
    names = {"t": values, "u": 2 * values + 1}
    return [fit(xr.DataArray(v, {"x": x, "y": y}, name=n), **how) for n, v in names.items()]


def test_several_models_survive_one_file_and_share_what_they_have_in_common(tmp_path):
    models = two_models()
    save_models(models, tmp_path / "both.npz")
    again = load_models(tmp_path / "both.npz")
    assert list(again) == ["t", "u"]
    for model in models:
        read = again[model.name]
        np.testing.assert_array_equal(read.predict(x=[0.7]), model.predict(x=[0.7]))
        np.testing.assert_array_equal(read.std(x=[0.7]), model.std(x=[0.7]))
    with np.load(tmp_path / "both.npz") as file:
        assert [name for name in file.files if name.startswith("1_")] == ["1_core"]


def test_one_model_is_chosen_from_several_by_name(tmp_path):
    save_models(two_models(), tmp_path / "both.npz")
    assert load_model(tmp_path / "both.npz", "u").name == "u"
    with pytest.raises(SettingError, match=r"models of 2 variables: t, u\. Choose one") as refused:
        load_model(tmp_path / "both.npz")
    assert refused.value.setting == "var"
    with pytest.raises(SettingError, match=r"no variable 'v'\. It has t, u"):
        load_model(tmp_path / "both.npz", "v")


def test_one_model_is_saved_as_ever_and_names_differ(tmp_path):
    one, other = two_models()
    save_models([one], tmp_path / "one.npz")
    one.save(tmp_path / "same.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "same.npz").read_bytes()
    assert list(load_models(tmp_path / "one.npz")) == ["t"]
    with pytest.raises(InputError, match="same name: t, t"):
        save_models([one, one], tmp_path / "twice.npz")
    save_models([one, other], tmp_path / "one.npz")
    with pytest.raises(OutputError, match="exists already"):
        save_models([one, other], tmp_path / "one.npz", overwrite=False)


def test_a_file_of_several_that_lacks_a_member_is_damaged(tmp_path):
    header, arrays = join_records([model_record(model) for model in two_models()])
    for broken in (
        {"variables": []},
        {"variables": [header["variables"][0]] * 2},
        {"variables": [{**header["variables"][0], "members": {"core": "7_core"}}]},
        {"variables": 3},
    ):
        modelfile.write(tmp_path / "m.npz", broken, arrays, version=modelfile.SEVERAL)
        with pytest.raises(ModelFileError, match="is damaged"):
            load_models(tmp_path / "m.npz")
