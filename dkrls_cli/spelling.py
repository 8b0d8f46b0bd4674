"""Suggestions for words that are not known: "Did you mean 'latitude'?"."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

# Least similarity, 0 to 1, of a suggestion: difflib's own default, which one slip in three letters
# still reaches.
_ALIKE = 0.6

# Choices, and letters of a word, that are compared: more take long, and help nobody.
_MOST_CHOICES, _MOST_LETTERS = 500, 60


def suggest(word: str, choices: Iterable[str]) -> str:
    """Return a sentence that suggests the choice most like a word, or nothing if none is alike.

    Parameters
    ----------
    word
        What was written, and is not one of the choices. Upper and lower case are the same.
    choices
        What could have been meant.

    Returns
    -------
    str
        A sentence to put behind a message, with a space before it; empty without a suggestion.

    Examples
    --------
    >>> suggest("latitide", ["latitude", "longitude"])
    " Did you mean 'latitude'?"
    >>> suggest("depth", ["latitude", "longitude"])
    ''
    """
    from difflib import get_close_matches  # only where there is an error

    if len(word) > _MOST_LETTERS:
        return ""
    few = (choice for choice in islice(choices, _MOST_CHOICES) if len(choice) <= _MOST_LETTERS)
    by_lower = {choice.lower(): choice for choice in few}
    found = get_close_matches(word.lower(), by_lower, n=1, cutoff=_ALIKE)
    return f" Did you mean '{by_lower[found[0]]}'?" if found else ""
