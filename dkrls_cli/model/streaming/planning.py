"""Blocks of answers beyond memory: which parts of the grid are read and answered at a time.

A block of answers needs a box of the data (:mod:`dkrls_cli.model.streaming.answering`). Axes that
pass through are cut, since each of their answers needs one sample. Where no axis passes through, or
boxes that are small enough would read the stored chunks of the file again and again, the work is
done in two stages: along one axis, the *spooled* one, the data is read part by part and answered
along all others, and the result is kept on disk in tiles that are whole along the spooled axis;
then each tile is answered along that axis.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

from dkrls_cli.arrays import Slices
from dkrls_cli.cascade.streaming.steps import cheapest_order
from dkrls_cli.errors import InputError
from dkrls_cli.model.streaming.answering import BlockAnswers

_SLACK = 1.15
"""Memory that is told, beside what the arrays of a block take: buffers of libraries, and heaps."""

_ENOUGH = 2**23
"""Bytes of a box from which larger ones are slower: what is made of 8 MB stays in the cache."""


@dataclass(frozen=True)
class Work:
    """The size of the data and of the machine.

    Attributes
    ----------
    chunks
        Sizes of the stored chunks along every axis.
    item
        Bytes of a number of the data as it is read.
    stored
        Bytes of a number of the answers as they are written.
    limit
        Bytes that blocks may take, all that are under way together.
    workers
        Blocks under way at the same time.
    blocks
        Blocks that are wanted at least, so that all workers have some until the end.
    """

    chunks: tuple[int, ...]
    item: int
    stored: int
    limit: float
    workers: int = 1
    blocks: int = 1


@dataclass(frozen=True)
class Blocks:
    """Blocks of a product grid.

    Attributes
    ----------
    cuts
        The parts of every axis. A block is one part of each.
    memory
        Bytes that the largest block takes.
    bytes_read
        Bytes that all blocks read, in whole chunks.
    """

    cuts: tuple[tuple[slice, ...], ...]
    memory: int
    bytes_read: int

    def __len__(self) -> int:
        """Return the number of blocks."""
        return math.prod(len(cut) for cut in self.cuts)

    def __iter__(self) -> Iterator[Slices]:
        """Yield the blocks in C order."""
        return iter(product(*self.cuts))

    @property
    def region(self) -> tuple[int, ...]:
        """Sizes of the first block, which no other exceeds."""
        return tuple(cut[0].stop - cut[0].start for cut in self.cuts)


@dataclass(frozen=True)
class Spooling:
    """Two stages of answers.

    Attributes
    ----------
    axis
        The spooled axis.
    first
        Blocks of the first stage: samples of the spooled axis, answers along the others.
    second
        Blocks of the answers, each whole along the spooled axis.
    """

    axis: int
    first: Blocks
    second: Blocks


@dataclass(frozen=True)
class BlockPlan:
    """How answers beyond memory are made.

    Attributes
    ----------
    blocks
        The blocks of the answers that are written.
    spooling
        The two stages, or None if there is one.
    memory
        Bytes that are taken at most by all blocks that are under way.
    bytes_read, bytes_spooled, bytes_written
        Bytes read from the file, kept on disk meanwhile, and written.
    """

    blocks: Blocks
    spooling: Spooling | None
    memory: int
    bytes_read: int
    bytes_spooled: int
    bytes_written: int

    @property
    def tasks(self) -> int:
        """Number of boxes that are read and answered."""
        return len(self.blocks) + (len(self.spooling.first) if self.spooling else 0)

    @property
    def bytes_moved(self) -> int:
        """Bytes that are read and written, those kept meanwhile twice."""
        return self.bytes_read + 2 * self.bytes_spooled + self.bytes_written


def plan_blocks(answers: BlockAnswers, work: Work) -> BlockPlan:
    """Plan the blocks that read least and fit into memory.

    Raises
    ------
    InputError
        If even the smallest blocks do not fit.
    """
    written = math.prod(answers.shape) * work.stored * (1 + answers.std)
    plans = []
    room = work.limit / work.workers
    direct = _cut(answers, work, room)
    if direct is not None:
        memory = work.workers * direct.memory
        plans.append(BlockPlan(direct, None, memory, direct.bytes_read, 0, written))
    for axis in range(len(answers.shape)):
        if answers.is_separable and not answers.passes(axis):
            plan = _spooled(answers, work, axis, room, written)
            plans += [plan] if plan is not None else []
    if not plans:
        least = work.workers * _memory(answers, work, tuple(_smallest(answers)))
        raise InputError(
            f"The smallest part of '{answers.query.model.name}' that can be answered at once needs "
            f"about {least / 1e6:.0f} MB beside the process, and of the memory that is allowed "
            f"{max(0.0, work.limit) / 1e6:.0f} MB are left for it. Allow more memory, or ask for "
            "fewer coordinates."
        )
    return min(plans, key=lambda plan: plan.bytes_moved)


def _smallest(answers: BlockAnswers) -> list[int]:
    """Return the sizes of the smallest block: one answer along axes that pass through."""
    return [1 if answers.passes(axis) else size for axis, size in enumerate(answers.shape)]


def _cut(answers: BlockAnswers, work: Work, room: float) -> Blocks | None:
    """Return the blocks of one stage that read least, or None if none fit into memory.

    Axes that pass through are cut in halves, each time the one that adds least to what is read,
    until a block fits. So that several can be under way, and little is lost if one fails, blocks
    are not much larger than what is fast to read.
    """
    sizes = list(answers.shape)
    open_axes = [axis for axis, size in enumerate(sizes) if answers.passes(axis) and size > 1]
    while True:
        enough = _count(answers.shape, sizes) >= work.blocks
        enough = enough and _box_bytes(answers, work, sizes) <= _ENOUGH
        if _memory(answers, work, sizes) <= room and (enough or not open_axes):
            break
        trials = {axis: _halved(answers, work, sizes, axis) for axis in open_axes}
        trials = {axis: trial for axis, trial in trials.items() if trial != sizes}
        if not trials:
            if _memory(answers, work, sizes) > room:
                return None
            break
        best = min(trials, key=lambda axis: (_bytes_read(answers, work, trials[axis]), axis))
        fits = _memory(answers, work, sizes) <= room
        more = _bytes_read(answers, work, trials[best]) > _bytes_read(answers, work, sizes)
        if fits and more:  # smaller blocks would read chunks twice
            break
        sizes = trials[best]
    cuts = _cuts(answers.shape, sizes)
    return Blocks(cuts, _memory(answers, work, sizes), _bytes_read(answers, work, sizes))


def _count(shape: Sequence[int], sizes: Sequence[int]) -> int:
    """Return the number of blocks of some sizes."""
    return math.prod(-(-size // step) for size, step in zip(shape, sizes, strict=True))


def _halved(answers: BlockAnswers, work: Work, sizes: Sequence[int], axis: int) -> list[int]:
    """Return sizes of blocks with one axis cut in half, in whole chunks where it has several."""
    result, chunk = list(sizes), work.chunks[axis]
    half = -(-result[axis] // 2)
    if half > chunk:
        half = -(-half // chunk) * chunk
        half = half if half < result[axis] else chunk
    result[axis] = max(1, min(half, result[axis]))
    return result


def _cuts(shape: Sequence[int], sizes: Sequence[int]) -> tuple[tuple[slice, ...], ...]:
    """Return every axis cut into parts of a size."""
    return tuple(
        tuple(slice(start, min(start + step, size)) for start in range(0, size, step))
        for size, step in zip(shape, sizes, strict=True)
    )


def _bytes_read(answers: BlockAnswers, work: Work, sizes: Sequence[int]) -> int:
    """Return what blocks of some sizes read, in whole chunks: a product over the axes."""
    total = work.item
    for axis, (parts, samples) in enumerate(
        zip(_cuts(answers.shape, sizes), answers.samples, strict=True)
    ):
        if answers.passes(axis):
            windows = [answers.rows[axis].window(part) for part in parts]
        else:
            windows = [slice(0, samples)] * len(parts)
        total *= sum(_in_chunks(window, work.chunks[axis], samples) for window in windows)
    return total


def _in_chunks(window: slice, chunk: int, size: int) -> int:
    """Return the samples of all chunks that a window touches."""
    return int(min(size, -(-window.stop // chunk) * chunk) - window.start // chunk * chunk)


def _box_shape(answers: BlockAnswers, sizes: Sequence[int]) -> list[int]:
    """Return the sizes of the largest box that a block needs."""
    return [
        max(w.stop - w.start for w in map(answers.rows[axis].window, parts))
        if answers.passes(axis)
        else answers.samples[axis]
        for axis, parts in enumerate(_cuts(answers.shape, sizes))
    ]


def _box_bytes(answers: BlockAnswers, work: Work, sizes: Sequence[int]) -> int:
    """Return the bytes of the largest box that a block needs."""
    return work.item * math.prod(_box_shape(answers, sizes))


def _memory(answers: BlockAnswers, work: Work, sizes: Sequence[int]) -> int:
    """Return the bytes that a block takes: its box, what is between, its answers and errors."""
    box = math.prod(_box_shape(answers, sizes))
    own, item = math.prod(sizes), answers.dtype.itemsize
    steps = _steps(answers, _box_shape(answers, sizes), sizes)
    between = max(map(sum, pairwise(steps)), default=box)
    answered = own * (2 * item + work.stored + (24 + work.stored if answers.std else 0))
    held = max(box * (work.item + item) + box * item, between * item + answered)
    return int(_SLACK * held) + answers.working_bytes(box)


def _steps(answers: BlockAnswers, box: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """Return the cells of a block after each axis, from those of the box on."""
    shape, cells = list(box), [math.prod(box)]
    for axis in cheapest_order(answers.rows, box, sizes):
        shape[axis] = sizes[axis]
        cells.append(math.prod(shape))
    return cells


def _spooled(
    answers: BlockAnswers, work: Work, axis: int, room: float, written: int
) -> BlockPlan | None:
    """Return two stages with a spooled axis, or None if their blocks do not fit into memory."""
    poles = answers.query.model.poles
    if poles is not None and axis in (poles.latitude, poles.longitude):
        return None
    samples, item = answers.samples[axis], answers.dtype.itemsize
    sizes = list(answers.shape)
    others = math.prod(sizes) // sizes[axis]
    whole = [*answers.samples]
    each = _SLACK * (math.prod(whole) // samples * (work.item + 2 * item) + 2 * others * item)
    if each > room:
        return None
    step = int(max(1, min(samples, room // each, -(-_ENOUGH * samples // math.prod(whole)))))
    step = step if step < work.chunks[axis] else step // work.chunks[axis] * work.chunks[axis]
    first_cuts = list(_cuts(sizes, sizes))
    first_cuts[axis] = _cuts([samples], [step])[0]
    read = work.item * math.prod(whole)
    first = Blocks(tuple(first_cuts), int(each * step), read)
    tile = _tile(answers, work, axis, room)
    if tile is None:
        return None
    second = Blocks(_cuts(sizes, tile), _tile_memory(answers, work, axis, tile), 0)
    memory = work.workers * max(first.memory, second.memory)
    spooled = samples * others * item
    return BlockPlan(second, Spooling(axis, first, second), memory, read, spooled, written)


def _tile(answers: BlockAnswers, work: Work, axis: int, room: float) -> list[int] | None:
    """Return the sizes of a tile that is whole along the spooled axis and fits into memory."""
    sizes = list(answers.shape)
    while _tile_memory(answers, work, axis, sizes) > room:
        cuttable = [a for a, size in enumerate(sizes) if a != axis and size > 1]
        if not cuttable:
            return None
        longest = max(cuttable, key=lambda a: sizes[a])
        sizes[longest] = -(-sizes[longest] // 2)
    return sizes


def _tile_memory(answers: BlockAnswers, work: Work, axis: int, sizes: Sequence[int]) -> int:
    """Return the bytes that a tile takes: its samples along the spooled axis, and its answers."""
    own, item = math.prod(sizes), answers.dtype.itemsize
    held = own // sizes[axis] * answers.samples[axis]
    answered = own * (2 * item + work.stored + (24 + work.stored if answers.std else 0))
    return int(_SLACK * (held * 24 + answered))  # long levels solve in double precision
