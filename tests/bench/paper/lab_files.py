"""Raw readings of a small lab, with everything that may be wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator


def degrees(mote: int, step: float) -> float:
    return 20 + mote / 10 + math.sin(step / 15)


def raw_lines() -> Iterator[str]:
    """A lab of six motes for 420 steps: a reading each 30 s, and all that may be wrong."""
    for mote in (1, 2, 3, 5, 7, 9):
        for step in range(420):
            clock = f"{step // 120:02d}:{step // 2 % 60:02d}:{step % 2 * 30:02d}.25"
            head = f"2004-02-28 {clock} {step} {mote}"
            if mote == 7 and step > 330:
                continue  # it fell silent
            if mote == 2 and 340 <= step < 350:
                yield f"{head} 122.153 -4.0 11.04 2.03"  # its battery is low
                continue
            yield f"{head} {degrees(mote, step):.6f} 37.1 45.08 2.69"
            if step == 5:
                yield f"{head} 19.3"  # cut short
    yield "2004-03-31 03:38:15.757551 2 1 122.153 -3.91901 11.04 2.03397"
    yield "2004-02-28 01:00:00.5 3 65407 19.9 37.0 45.0 2.7"
