"""Print the lowest versions that pyproject.toml allows, as pins for pip: ``numpy==2.0``.

Usage: python3 .ci/lowest.py [EXTRA ...]

The core dependencies and the named extras are printed. A package that is listed twice gets the
higher of its bounds, since an environment with both must satisfy both.
"""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]


def pins(extras: list[str]) -> list[str]:
    """Return one pin for each dependency of the package and of the extras."""
    listed = [*PROJECT["dependencies"]]
    for extra in extras:
        listed += PROJECT["optional-dependencies"][extra]
    lowest: dict[str, str] = {}
    for requirement in listed:
        found = re.match(r"([\w.-]+)>=([\d.]+)", requirement)
        if found is None:
            raise SystemExit(f"'{requirement}' has no lower bound. Expected 'name>=version'.")
        name, version = found.groups()
        lowest[name] = max(lowest.get(name, "0"), version, key=as_numbers)
    return [f"{name}=={version}" for name, version in lowest.items()]


def as_numbers(version: str) -> list[int]:
    """Return the parts of a version as numbers, which compare as versions do."""
    return [int(part) for part in version.split(".")]


if __name__ == "__main__":
    print(*pins(sys.argv[1:]), sep="\n")
