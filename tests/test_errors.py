"""The tree of exceptions, and how far each of them is caught."""

import pickle
import re

import pytest

from dkrls_cli import errors
from dkrls_cli.errors import DkrlsError, InputError, ModelFileError, OutputError, SettingError

LEAVES = [InputError, ModelFileError, OutputError, SettingError]


@pytest.mark.parametrize("leaf", LEAVES)
def test_the_root_catches_every_error(leaf: type[DkrlsError]) -> None:
    with pytest.raises(DkrlsError, match=r"^what is wrong$"):
        raise leaf("what is wrong")


@pytest.mark.parametrize("leaf", LEAVES)
def test_wrong_data_and_settings_are_value_errors_and_files_are_not(leaf: type) -> None:
    assert issubclass(leaf, ValueError) == (leaf in (InputError, SettingError))
    assert not issubclass(leaf, OSError)


def test_no_leaf_catches_another() -> None:
    for leaf in LEAVES:
        assert [other for other in LEAVES if issubclass(other, leaf)] == [leaf]


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    drawn = re.findall(r"^(?:│   )?(?:├── |└── )?(\w+Error)\s{2,}", errors.__doc__ or "", re.M)
    defined = [name for name in vars(errors) if name.endswith("Error")]
    assert drawn == defined
    for name in drawn:
        says = f"{name} .*also a ValueError"
        assert bool(re.search(says, errors.__doc__ or "")) == issubclass(
            getattr(errors, name), ValueError
        )


@pytest.mark.parametrize("kind", [InputError, SettingError, ModelFileError, OutputError])
def test_an_error_has_its_message_and_may_name_a_setting(kind: type[DkrlsError]) -> None:
    plain, with_setting = kind("Wrong."), kind("Wrong.", setting="overwrite")
    assert (str(plain), plain.setting) == ("Wrong.", None)
    assert (str(with_setting), with_setting.setting) == ("Wrong.", "overwrite")
    assert isinstance(plain, DkrlsError)
    assert isinstance(plain, ValueError) == (kind in (InputError, SettingError))


def test_an_error_passes_between_processes() -> None:
    passed = pickle.loads(pickle.dumps(SettingError("Wrong.", setting="overwrite")))
    assert (type(passed), str(passed), passed.setting) == (SettingError, "Wrong.", "overwrite")
