"""Inputs of a run: from an archive of global arrays, or made from a seed; and their parts on the ranks.

| name in the archive | what it is |
|---|---|
| `in0`, `in1`, ... | the whole input, split by its layout |
| `in0@3` | what rank 3 holds of input 0, for inputs that are not one value (given for every rank) |
| `out0`, ... | what is expected of an output: compared, never used to compute |

A pending input is put on the first coordinates of its pending axes, the others get the identity of the reduction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from dtir.execute.archive import Archive, ArchiveError, Header
from dtir.execute.dtypes import Array, is_extended, is_floating, narrow_bits, numpy_dtype
from dtir.execute.hlo.convert import by_value
from dtir.execute.placement import Placement
from dtir.execute.steps import ExecPlan, Form, Slot
from dtir.execute.values import Held, rows, shared, stack
from dtir.ir.reductions import ReductionKind
from dtir.schema.diagnostics import Diagnostic, DiagnosticSet, Severity
from dtir.schema.result import Checked, Err, Ok


@dataclass(frozen=True, slots=True)
class Inputs:
    """Inputs of a run.

    Args:
        held: what the ranks hold, by slot.
        whole: undivided arrays by input number, where there is one.
        expected: expected outputs by number, read from the same archive.
        diagnostics: remarks (an input given to all ranks alike).
        seed: what generated data came from; None for data from an archive.
    """

    held: Mapping[int, Held] = field(repr=False)
    whole: Mapping[int, Array] = field(repr=False)
    expected: Mapping[int, Array] = field(repr=False)
    diagnostics: DiagnosticSet = field(default_factory=DiagnosticSet)
    seed: int | None = None


def input_labels(plan: ExecPlan) -> list[str]:
    """What to call each input in a message: its number and name."""
    return [f"in{number} ({plan.main.slots[slot].name})" for number, slot in enumerate(plan.main.inputs)]


def output_leaves(plan: ExecPlan) -> tuple[int, ...]:
    """The slot of every output in the order of the source: a value that is returned twice stands twice."""
    listed = plan.attribute("hlo.outputs")
    if isinstance(listed, tuple):
        return tuple(plan.main.outputs[number] for number in cast("tuple[int, ...]", listed))
    return plan.main.outputs


# -- from an archive ----------------------------------------------------------------------------------------------------


def read_inputs(plan: ExecPlan, archive: Archive) -> Checked[Inputs]:
    """Inputs from an archive.

    Returns:
        `Err` with everything that is missing, left over or does not fit.
    """
    return _Reader(plan, archive).read()


class _Reader:
    def __init__(self, plan: ExecPlan, archive: Archive) -> None:
        self._plan = plan
        self._archive = archive
        self._found: list[Diagnostic] = []
        self._used: set[str] = set()

    def _error(self, code: str, message: str, hint: str) -> None:
        self._found.append(Diagnostic(code, message, (self._archive.path,), Severity.ERROR, hint))

    def read(self) -> Checked[Inputs]:
        held: dict[int, Held] = {}
        whole: dict[int, Array] = {}
        for number, slot in enumerate(self._plan.main.inputs):
            part = self._input(number, self._plan.main.slots[slot])
            if part is not None:
                held[slot] = part[0]
                if part[1] is not None:
                    whole[number] = part[1]
        self._leftovers()
        expected = self._expected()
        found = DiagnosticSet(tuple(self._found))
        if not found.ok:
            return Err(found)
        return Ok(Inputs(held, whole, expected, found), DiagnosticSet(found.infos))

    def _input(self, number: int, slot: Slot) -> tuple[Held, Array | None] | None:
        name, label = f"in{number}", f"in{number} ({slot.name})"
        ranks = tuple(range(self._plan.ranks))
        given = [rank for rank in ranks if f"{name}@{rank}" in self._archive.headers]
        if name not in self._archive.headers and given:
            return self._per_rank(name, label, slot, given)
        if name not in self._archive.headers:
            self._error(
                "run.input_missing",
                f"the archive has no array {name}; the program wants {_wanted(slot)} for {slot.name}",
                f"store every input as in0 to in{len(self._plan.main.inputs) - 1}, or leave --inputs out for generated data",
            )
            return None
        self._used.add(name)
        header = self._archive.headers[name]
        if not self._fits(label, slot, header):
            return None
        array = self._array(name, slot)
        if array is None:
            return None
        if self._plan.form is Form.UNDIVIDED or not _is_divided(slot.placement):
            if slot.placement.sharding.varying and self._plan.form is Form.PER_RANK:
                self._found.append(
                    Diagnostic(
                        "run.input_replicated",
                        f"{label} is data of each rank and the program does not say how it is split: all ranks get the same",
                        (self._archive.path,),
                        Severity.INFO,
                        f"store {name}@0, {name}@1, ... to give every rank its own",
                    )
                )
            return shared(ranks, array), array
        return split(array, slot, ranks), array

    def _per_rank(self, name: str, label: str, slot: Slot, given: Sequence[int]) -> tuple[Held, None] | None:
        ranks = range(self._plan.ranks)
        self._used.update(f"{name}@{rank}" for rank in given)
        if len(given) < len(ranks):
            missing = [rank for rank in ranks if rank not in set(given)]
            self._error(
                "run.input_missing",
                f"{label} is given for {len(given)} of {len(ranks)} ranks; {name}@{missing[0]} is missing",
                f"store {name}@0 to {name}@{len(ranks) - 1}",
            )
            return None
        arrays: list[Array] = []
        for rank in ranks:
            header = self._archive.headers[f"{name}@{rank}"]
            wanted = slot.shape if slot.shape is not None else slot.placement.local_shape(rank)
            if not self._same(f"{name}@{rank}", slot, header, wanted):
                return None
            array = self._array(f"{name}@{rank}", slot)
            if array is None:
                return None
            arrays.append(array)
        return stack(tuple(ranks), arrays), None

    def _fits(self, label: str, slot: Slot, header: Header) -> bool:
        placement = slot.placement
        if header.shape == placement.shape or self._plan.form is Form.UNDIVIDED:
            return self._same(label, slot, header, placement.shape)
        if len(header.shape) == len(placement.shape) and all(
            extent == wanted
            or (
                placement.sizes(dim) is None
                and placement.shards(dim) > 1
                and _same_block(extent, wanted, placement.shards(dim))
            )
            for dim, (extent, wanted) in enumerate(zip(header.shape, placement.shape, strict=True))
        ):
            # A partitioned program knows its shards only: ceil(n / shards) elements each, the last ones padded.
            return self._same(label, slot, header, header.shape)
        return self._same(label, slot, header, placement.shape)

    def _same(self, label: str, slot: Slot, header: Header, shape: tuple[int, ...]) -> bool:
        fine = True
        if header.shape != shape:
            self._error(
                "run.input_shape",
                f"{label} has shape {list(header.shape)}, the program wants {list(shape)}",
                "give the global array; it is split by the layout of the input",
            )
            fine = False
        wanted = numpy_dtype(slot.value.type.dtype)
        if header.dtype != wanted and not _same_bits(header.dtype, wanted):
            self._error(
                "run.input_dtype",
                f"{label} is {header.dtype.name}, the program wants {slot.value.type.dtype} ({wanted.name})",
                f"convert it: array.astype({wanted.name!r})",
            )
            fine = False
        return fine

    def _array(self, name: str, slot: Slot) -> Array | None:
        try:
            array = self._archive.read(name)
        except ArchiveError as error:
            self._error("run.archive", str(error), "write the archive again")
            return None
        wanted = numpy_dtype(slot.value.type.dtype)
        array = array if array.dtype == wanted else array.view(wanted)
        bits = narrow_bits(slot.value.type.dtype)
        if bits is not None and array.size:
            low, high = (0, 2**bits - 1) if array.dtype.kind == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
            if int(array.min()) < low or int(array.max()) > high:
                self._error(
                    "run.input_dtype",
                    f"{name} holds {int(array.min())} to {int(array.max())}, {slot.value.type.dtype} is {low} to {high}",
                    "bring the numbers into the range of the type",
                )
                return None
        return array

    def _leftovers(self) -> None:
        count = len(self._plan.main.inputs)
        extra = [
            name
            for name in self._archive.headers
            if name not in self._used and name.startswith("in") and name[2:].partition("@")[0].isdigit()
        ]
        if extra:
            self._error(
                "run.input_unused",
                f"the archive has {', '.join(extra[:5])}, the program has {count} inputs"
                + (f" and {self._plan.ranks} ranks" if any("@" in name for name in extra) else ""),
                "check that archive and program belong together",
            )

    def _expected(self) -> dict[int, Array]:
        found: dict[int, Array] = {}
        for number, slot in enumerate(output_leaves(self._plan)):
            header = self._archive.headers.get(f"out{number}")
            wanted = self._plan.main.slots[slot]
            dtype = numpy_dtype(wanted.value.type.dtype)
            if header is None or (header.dtype != dtype and not _same_bits(header.dtype, dtype)):
                continue
            if len(header.shape) != len(wanted.placement.shape):
                continue
            try:
                array = self._archive.read(f"out{number}")
            except ArchiveError:
                continue
            found[number] = array if array.dtype == dtype else array.view(dtype)
        return found


def _wanted(slot: Slot) -> str:
    return f"{slot.value.type.dtype}{list(slot.placement.shape)}"


def _same_bits(stored: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """True for ml_dtypes' types that numpy stored as raw bytes."""
    return is_extended(wanted) and stored.kind == "V" and stored.itemsize == wanted.itemsize


def _same_block(extent: int, padded: int, shards: int) -> bool:
    return extent > 0 and -(-extent // shards) * shards == padded


def _is_divided(placement: Placement) -> bool:
    return not placement.same_on_all() and not (
        placement.sharding.varying and not any(placement.sharding.dimension_axes) and not placement.partial_axes
    )


# -- splitting ------------------------------------------------------------------------------------------------------------


def split(array: Array, slot: Slot, ranks: Sequence[int]) -> Held:
    """Each rank's part of an undivided array: its block, zeros where the layout pads, wrapped neighbours as ghosts.

    Along pending axes the first coordinate gets the value and the others the identity of the reduction.
    """
    placement = slot.placement
    owners = [rank for rank in ranks if rank in slot.value.owners]
    if placement.same_on_all() and len(owners) == len(ranks):
        return shared(ranks, array)
    return stack(tuple(owners), [part_of(array, placement, rank) for rank in owners])


def part_of(array: Array, placement: Placement, rank: int) -> Array:
    """The part of one rank (see `split`)."""
    shape = placement.local_shape(rank)
    partial = placement.sharding.partial
    if partial is not None and placement.position(rank, partial.axes):
        return np.full(shape, _identity(partial.op, array.dtype), array.dtype)
    box = placement.box(rank)
    if placement.has_ghosts:
        index = [
            np.arange(start - placement.halo(dim)[0], stop + placement.halo(dim)[1]) % max(1, placement.shape[dim])
            for dim, (start, stop) in enumerate(box)
        ]
        return np.ascontiguousarray(array[np.ix_(*index)]) if index else array
    part = array[tuple(slice(start, stop) for start, stop in box)]
    if part.shape == shape:
        return part
    padded = np.zeros(shape, array.dtype)
    padded[tuple(slice(0, extent) for extent in part.shape)] = part
    return padded


def _identity(kind: ReductionKind, dtype: np.dtype[Any]) -> Any:
    match kind:
        case ReductionKind.SUM | ReductionKind.AVERAGE | ReductionKind.OR | ReductionKind.XOR | ReductionKind.CUSTOM:
            return 0
        case ReductionKind.PRODUCT:
            return 1
        case ReductionKind.AND:
            return -1 if dtype.kind == "i" else np.iinfo(dtype).max if dtype.kind == "u" else True
        case ReductionKind.MAX | ReductionKind.MIN:
            sign = -1 if kind is ReductionKind.MAX else 1
            if is_floating(dtype):
                return sign * np.inf
            if dtype.kind == "b":
                return sign > 0
            info = np.iinfo(dtype)
            return info.min if sign < 0 else info.max


# -- generated data ---------------------------------------------------------------------------------------------------------


def generate_inputs(plan: ExecPlan, seed: int) -> Inputs:
    """Inputs from a seed: the same for every back end, number of processes and machine.

    Floats are multiples of 1/64 between -1 and 1, so that 16-bit types hold them exactly, and never 0; integers are 0 to 7.
    """
    ranks = tuple(range(plan.ranks))
    held: dict[int, Held] = {}
    whole: dict[int, Array] = {}
    for number, slot_number in enumerate(plan.main.inputs):
        slot = plan.main.slots[slot_number]
        if plan.form is Form.PER_RANK and slot.placement.sharding.varying and not _is_divided(slot.placement):
            arrays = [
                generate(slot.shape or slot.placement.local_shape(rank), slot.value.type.dtype, (seed, number, rank))
                for rank in ranks
            ]
            held[slot_number] = stack(ranks, arrays)
            continue
        array = generate(slot.placement.shape, slot.value.type.dtype, (seed, number))
        whole[number] = array
        if plan.form is Form.UNDIVIDED:
            held[slot_number] = shared(ranks, array)
        else:
            held[slot_number] = _spoilt(split(array, slot, ranks), slot, (seed, number))
    return Inputs(held, whole, {}, seed=seed)


def _spoilt(held: Held, slot: Slot, key: tuple[int, int]) -> Held:
    """Copies that the program does not declare current hold other data on every rank, so that reading one shows."""
    valid = slot.value.valid_on
    if valid is None:
        return held
    arrays = [
        row if rank in valid else generate(row.shape, slot.value.type.dtype, (*key, rank + 1))
        for rank, row in zip(held.ranks, rows(held), strict=True)
    ]
    return stack(held.ranks, arrays)


def generate(shape: Sequence[int], dtype: str, key: Sequence[int]) -> Array:
    """An array of small numbers, by a key."""
    kind = numpy_dtype(dtype)
    generator = np.random.Generator(np.random.PCG64([abs(part) for part in key]))
    if kind.kind == "b":
        return generator.integers(0, 2, shape).astype(bool)
    bits = narrow_bits(dtype)
    if kind.kind in "iu" and not is_extended(kind):
        most = 8 if bits is None else min(8, 2 ** (bits - (kind.kind == "i")))
        return generator.integers(0, max(1, most), shape).astype(kind)
    numbers = _small(generator, shape)
    if kind.kind == "c":
        return (numbers + 1j * _small(generator, shape)).astype(kind)
    return by_value(np, np.asarray(numbers, np.float64), dtype)


def _small(generator: np.random.Generator, shape: Sequence[int]) -> Array:
    """Multiples of 1/64 between -1 and 1, never 0: what is lost or added twice shows."""
    return generator.integers(1, 65, shape) * generator.choice([-1 / 64, 1 / 64], shape)
