"""Dates that are not written as ISO 8601 has them: 31/01/2020, 2020/01/31, Jan-2020, 2020013112.

They are read where only one reading is possible. All texts of a column are looked at together: one
day above 12 shows which of two numbers is the day. Where both readings are possible, none is taken.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?P<name>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_CLOCK = r"(?:[T\s]+(?P<clock>\d{1,2}:\d{2}(?::\d{2}(?:\.\d*)?)?(?:\s*[AP]M|Z)?))?"
_GAP = r"[-/.\s,]\s*"


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(rf"\s*{text}\s*", re.IGNORECASE | re.ASCII)


_YEAR_FIRST = _pattern(rf"(?P<year>\d{{4}})([/.])(?P<month>\d{{1,2}})\2(?P<day>\d{{1,2}}){_CLOCK}")
_YEAR_LAST = _pattern(rf"(?P<a>\d{{1,2}})([-/.])(?P<b>\d{{1,2}})\2(?P<year>\d{{4}}){_CLOCK}")
_SHORT_YEAR = _pattern(
    rf"\d\d?/\d\d?/\d\d{_CLOCK}|\d\d([-.])\d\d\2\d\d{_CLOCK.replace('clock', 'c')}"
)
_NAMED = (
    _pattern(rf"(?:(?P<day>\d{{1,2}}){_GAP})?{_MONTH}(?:{_GAP})?(?P<year>\d{{4}}){_CLOCK}"),
    _pattern(rf"{_MONTH}{_GAP}(?P<day>\d{{1,2}}){_GAP}(?P<year>\d{{4}}){_CLOCK}"),
    _pattern(rf"(?P<year>\d{{4}})(?:{_GAP})?{_MONTH}(?:{_GAP}(?P<day>\d{{1,2}}))?{_CLOCK}"),
)
_SHORT_NAMED = _pattern(rf"(?:\d{{1,2}}{_GAP})?{_MONTH}{_GAP}'?\d{{2}}")
_YEAR_MONTH = r"(?P<year>1[5-9]\d\d|2[0-2]\d\d)(?P<month>0[1-9]|1[0-2])"
_YEAR_TO_DAY = _YEAR_MONTH + r"(?P<day>0[1-9]|[12]\d|3[01])"
_YEAR_TO_HOUR = _YEAR_TO_DAY + r"(?P<hour>[01]\d|2[0-3])"
# Dates of digits alone. With hours they have as many digits as seconds since 1970, which are not
# all of hours and days that exist.
_DIGITS = {
    "yyyymmdd": (_pattern(_YEAR_TO_DAY),),
    "yyyymmddhh": (_pattern(_YEAR_TO_HOUR),),
    "yyyymmddhhmm": (_pattern(_YEAR_TO_HOUR + r"(?P<minute>[0-5]\d)"),),
}
_MONTH_DIGITS = {"yyyymm": (_pattern(_YEAR_MONTH),)}
# Names of columns in which digits alone are a date; elsewhere they are a number.
_DATE_COLUMNS = re.compile(
    r"time|date|day|datetime|timestamp|(valid|date)_time|yyyymmdd(hh(mm)?)?", re.IGNORECASE
)
# The same for six digits, which may well be a number of seconds or hours.
_MONTH_COLUMNS = re.compile(r"date|month|year_?month|yyyymm", re.IGNORECASE)
_LAST_MONTH = 12


@dataclass(frozen=True)
class DateReading:
    """How the texts of a column are read as dates.

    Attributes
    ----------
    texts
        The dates as ISO 8601, one for each text; empty if there is a doubt.
    form
        How the dates are written, such as ``day/month/year``.
    doubt
        A text that is not clear, and why, as the rest of a sentence; None if all are clear.
    """

    texts: list[str]
    form: str
    doubt: tuple[str, str] | None = None


def looks_like_date(text: str) -> bool:
    """Return whether a text looks like a date that is not ISO 8601, clear or not.

    >>> looks_like_date("31/01/2020"), looks_like_date("Jan-2020"), looks_like_date("Jan")
    (True, True, False)
    """
    patterns = (_YEAR_FIRST, _YEAR_LAST, _SHORT_YEAR, *_NAMED, _SHORT_NAMED)
    return any(pattern.fullmatch(text) for pattern in patterns)


def read_dates(name: str, texts: Sequence[str]) -> DateReading | None:
    """Return the texts of a column as ISO dates, or None if they do not all look like dates.

    Parameters
    ----------
    name
        Name of the column: digits alone are a date in a column of that name only.
    texts
        Distinct texts of the column.

    Returns
    -------
    DateReading or None
        The dates, which may not exist (31/02/2020); or a doubt about how to read them.

    Examples
    --------
    >>> read_dates("t", ["31/01/2020", "01/02/2020"]).texts
    ['2020-01-31', '2020-02-01']
    >>> read_dates("t", ["01/02/2020"]).doubt
    ('01/02/2020', 'can be 2020-02-01 or 2020-01-02')
    """
    if not texts:
        return None
    if all(map(_YEAR_LAST.fullmatch, texts)):
        return _read_year_last(texts)
    forms = {"year/month/day": (_YEAR_FIRST,), "name of the month": _NAMED}
    forms |= _DIGITS if _DATE_COLUMNS.fullmatch(name) else {}
    forms |= _MONTH_DIGITS if _MONTH_COLUMNS.fullmatch(name) else {}
    for form, patterns in forms.items():
        dates = list(takewhile(bool, (_iso(patterns, text) for text in texts)))
        if len(dates) == len(texts):
            return DateReading(dates, form)
    if any(all(map(short.fullmatch, texts)) for short in (_SHORT_YEAR, _SHORT_NAMED)):
        return DateReading([], "", (texts[0], "has a year of two digits"))
    return None


def _read_year_last(texts: Sequence[str]) -> DateReading:
    """Return dates whose day and month are told apart by a number above 12."""
    matches = [match for match in map(_YEAR_LAST.fullmatch, texts) if match]
    day_first = [_join(match, match["b"], match["a"]) for match in matches]
    month_first = [_join(match, match["a"], match["b"]) for match in matches]
    large_first = [i for i, match in enumerate(matches) if int(match["a"]) > _LAST_MONTH]
    large_last = [i for i, match in enumerate(matches) if int(match["b"]) > _LAST_MONTH]
    if large_first and large_last:
        odd = max(large_first[0], large_last[0])
        other = texts[min(large_first[0], large_last[0])]
        return DateReading(
            [], "", (texts[odd], f"has day and month in another order than '{other}'")
        )
    if large_first or day_first == month_first:
        return DateReading(day_first, "day/month/year")
    if large_last:
        return DateReading(month_first, "month/day/year")
    pairs = zip(texts, day_first, month_first, strict=True)
    text, one, other = next(pair for pair in pairs if pair[1] != pair[2])
    return DateReading([], "", (text, f"can be {one} or {other}"))


def _iso(patterns: Sequence[re.Pattern[str]], text: str) -> str:
    """Return a text that a pattern matches as an ISO date, or nothing if none matches.

    The date has a day only if the text has one.
    """
    match = next(filter(None, (pattern.fullmatch(text) for pattern in patterns)), None)
    if match is None:
        return ""
    parts = match.groupdict()
    name = parts.get("name")
    month = str(_MONTHS.index(name[:3].lower()) + 1) if name else parts["month"]
    return _join(match, month, parts.get("day"))


def _join(match: re.Match[str], month: str, day: str | None) -> str:
    """Return year, month, day and time of day as ISO 8601."""
    date = f"{match['year']}-{int(month):02d}" + ("" if day is None else f"-{int(day):02d}")
    parts = match.groupdict()
    clock = parts.get("clock")
    if parts.get("hour"):
        clock = f"{parts['hour']}:{parts.get('minute', '00')}"
    return f"{date}T{_clock(clock)}" if clock and day is not None else date


def _clock(text: str) -> str:
    """Return a time of day of 24 hours; 12 AM is midnight."""
    half = text[-2:].upper()
    if half not in ("AM", "PM"):
        return text
    hour, rest = text[:-2].strip().split(":", 1)
    return f"{int(hour) % 12 + (12 if half == 'PM' else 0):02d}:{rest}"
