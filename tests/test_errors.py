"""The tree of exceptions, and how far each of them is caught."""

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
    drawn = re.findall(r"^(?:├── |└── )?(\w+Error)\s{2,}", errors.__doc__ or "", re.M)
    defined = [name for name in vars(errors) if name.endswith("Error")]
    assert drawn == defined
    for name in drawn:
        says = f"{name} .*also a ValueError"
        assert bool(re.search(says, errors.__doc__ or "")) == issubclass(
            getattr(errors, name), ValueError
        )
