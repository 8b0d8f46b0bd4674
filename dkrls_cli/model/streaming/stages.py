"""Answers beyond memory, from the boxes of the data to the regions of the output."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from dkrls_cli.arrays import Slices
from dkrls_cli.files.output.leftovers import private_folder
from dkrls_cli.model.streaming.answering import BlockAnswers
from dkrls_cli.model.streaming.boxes import Boxes
from dkrls_cli.model.streaming.planning import BlockPlan
from dkrls_cli.model.streaming.running import Scheduler
from dkrls_cli.model.streaming.spool import Spool, make_spool

_TOGETHER, _ROUNDS = 8, 12
"""Items at most that are sent to another machine together, and times at least that every worker is
sent some."""

Answers = tuple[NDArray[Any], NDArray[Any] | None]
"""The answers of a block, and their standard errors or None."""


class Sink(Protocol):
    """Takes the answers of blocks."""

    def __call__(self, part: Slices, answers: Answers) -> Any:
        """Take the answers of a block; return what another process is to be told of them."""


def put_answers(
    write: Callable[..., Any], names: Sequence[str], part: Slices, answers: Sequence[Any]
) -> list[Any]:
    """Write the answers of a block and their errors; return what the writer tells of each."""
    return [write(name, part, values) for name, values in zip(names, answers, strict=False)]


@dataclass(frozen=True, eq=False)
class DirectTask:
    """Answers a block from its box; with a sink, the answers go there and are not returned."""

    boxes: Boxes
    answers: BlockAnswers
    sink: Sink | None

    def __call__(self, part: Slices) -> Any:
        """Answer a block."""
        found = self.answers.answer(self.boxes.read_box(self.answers.box(part)), part)
        return found if self.sink is None else self.sink(part, found)


@dataclass(frozen=True, eq=False)
class FirstStage:
    """Answers along all axes but the spooled one, at some samples of that, into the spool."""

    boxes: Boxes
    answers: BlockAnswers
    spool: Spool

    def __call__(self, part: Slices) -> None:
        """Answer the samples that a part has of the spooled axis."""
        axis = self.spool.axis
        box = list(self.answers.box(part))
        box[axis] = part[axis]
        centred = self.answers.centre(self.boxes.read_box(tuple(box)), tuple(box), spent=True)
        others = [other for other in range(len(part)) if other != axis]
        self.spool.put(self.answers.apply(centred, part, others), part[axis].start)


@dataclass(frozen=True, eq=False)
class SecondStage:
    """Answers a tile of the spool along the spooled axis."""

    answers: BlockAnswers
    spool: Spool
    sink: Sink | None

    def __call__(self, place: int) -> Any:
        """Answer a tile."""
        part, axis = self.spool.tiles[place], self.spool.axis
        tensor = self.answers.apply(self.spool.take(place), part, [axis])
        found = self.answers.finish(tensor, part)
        return found if self.sink is None else self.sink(part, found)


@dataclass(frozen=True, eq=False)
class Several:
    """Runs a task for several items, one after the other: sending a task takes milliseconds."""

    task: Callable[[Any], Any]

    def __call__(self, items: Sequence[Any]) -> list[Any]:
        """Return the results for all items."""
        return [self.task(item) for item in items]


def answer_in_blocks(
    boxes: Boxes,
    answers: BlockAnswers,
    plan: BlockPlan,
    scheduler: Scheduler,
    sink: Sink | None,
    *,
    collect: Callable[[int, Any], None] = lambda place, result: None,
    done: Collection[int] = (),
    progress: Callable[[float], None] = lambda share: None,
    folder: str | None = None,
) -> None:
    """Answer all blocks of a plan.

    Parameters
    ----------
    boxes
        The data.
    answers
        What is asked.
    plan
        The blocks.
    scheduler
        Runs the blocks.
    sink
        Takes the answers where they are made, on a worker; None: they are returned from there.
    collect
        Called here with the place of a block, and with what the sink returned of it, or with its
        answers if there is no sink; block by block, in their order.
    done
        Places of the blocks that have been answered before.
    progress
        Called with the share that is done, 0 to 1.
    folder
        Folder for what is kept between two stages; None: a temporary one of the system.
    """
    tiles = list(plan.blocks)
    left = [place for place in range(len(tiles)) if place not in done]
    if plan.spooling is None or not left:
        parts = [tiles[place] for place in left]
        direct = DirectTask(boxes, answers, sink)
        _run(scheduler, direct, parts, left, collect, progress, small=sink is not None)
        return
    axis, first = plan.spooling.axis, list(plan.spooling.first)
    with private_folder(folder) as place_of_spool:
        samples = answers.samples[axis]
        spool = make_spool(place_of_spool, axis, samples, tiles, answers.dtype.name)
        for place, _ in run_small(scheduler, FirstStage(boxes, answers, spool), first):
            progress(0.5 * (place + 1) / len(first))
        _run(
            scheduler,
            SecondStage(answers, spool, sink),
            left,
            left,
            collect,
            lambda share: progress(0.5 + share / 2),
            small=sink is not None,
        )


def _run(
    scheduler: Scheduler,
    task: Callable[[Any], Any],
    items: Sequence[Any],
    places: Sequence[int],
    collect: Callable[[int, Any], None],
    progress: Callable[[float], None],
    *,
    small: bool,
) -> None:
    """Run a task for all items, each of which belongs to the block at a place.

    `small` tells that results take little memory.
    """
    results = run_small(scheduler, task, items) if small else scheduler.run(task, items)
    for number, found in results:
        collect(places[number], found)
        progress((number + 1) / len(items))


def run_small(
    scheduler: Scheduler, task: Callable[[Any], Any], items: Sequence[Any]
) -> Iterator[tuple[int, Any]]:
    """Yield the place and the result of every item, in their order; results take little memory.

    On other machines several items go together, so few that no worker waits long for the last.
    """
    together = min(_TOGETHER, len(items) // (_ROUNDS * scheduler.workers))
    if not scheduler.is_remote or together < 2:
        yield from scheduler.run(task, items)
        return
    groups = [items[start : start + together] for start in range(0, len(items), together)]
    for number, found in scheduler.run(Several(task), groups):
        yield from enumerate(found, number * together)
