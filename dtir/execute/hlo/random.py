"""Random bits: the counter-based generators that XLA uses, bit for bit; and `rng`, which HLO leaves to the implementation.

Source of the generators: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011 (doi 10.1145/2063384.2063405).
Source of how XLA feeds them and lays out their output: openxla/xla, xla/hlo/builder/lib/prng.cc.

>>> import numpy as np
>>> zero = np.zeros((), np.uint32)
>>> [hex(int(word)) for word in threefry((zero, zero), (zero, zero))]
['0x6b200159', '0x99ba4efe']
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from dtir.execute.dtypes import Array, narrow_bits
from dtir.execute.hlo import convert
from dtir.execute.hlo.call import ArrayType, Context, Evaluator, HloCall, HloError, Operands, Results
from dtir.execute.hlo.convert import element_bits

Words: TypeAlias = tuple[Array, ...]

_U32 = np.uint32
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = _U32(0x1BD11BDA)


def threefry(counter: Words, key: Words) -> Words:
    """Threefry 2x32 with 20 rounds: two words from a counter of two words and a key of two."""
    keys = (key[0], key[1], key[0] ^ key[1] ^ _PARITY)
    x, y = counter[0] + keys[0], counter[1] + keys[1]
    for block in range(5):
        for distance in _ROTATIONS[block % 2]:
            x = x + y
            y = (y << _U32(distance)) | (y >> _U32(32 - distance))
            y = x ^ y
        x = x + keys[(block + 1) % 3]
        y = y + keys[(block + 2) % 3] + _U32(block + 1)
    return x, y


def philox(counter: Words, key: Words) -> Words:
    """Philox 4x32 with 10 rounds: four words from a counter of four words and a key of two."""
    a, b, c, d = counter
    k0, k1 = key
    for _ in range(10):
        first = a.astype(np.uint64) * np.uint64(0xD2511F53)
        second = c.astype(np.uint64) * np.uint64(0xCD9E8D57)
        a, b, c, d = _high(second) ^ b ^ k0, _low(second), _high(first) ^ d ^ k1, _low(first)
        k0, k1 = k0 + _U32(0x9E3779B9), k1 + _U32(0xBB67AE85)
    return a, b, c, d


def _low(word: Array) -> Array:
    return word.astype(_U32)


def _high(word: Array) -> Array:
    return (word >> np.uint64(32)).astype(_U32)


def _long(low: Array, high: Array) -> Array:
    return low.astype(np.uint64) | (high.astype(np.uint64) << np.uint64(32))


def threefry_bits(state: Array, shape: tuple[int, ...], bits: int) -> tuple[Array, Array]:
    """Words of `bits` bits and the new state, for every instance.

    Args:
        state: ``(instances, 2)`` of 64 bits: the key, then the counter.
    """
    key = (_low(state[:, 0]), _high(state[:, 0]))
    if bits == 64:
        words, used = _threefry_at(state, key, shape)
        found = _long(*words)
    else:
        dim, half = _half_shape(shape)
        words, used = _threefry_at(state, key, half)
        found = _interleaved(words, shape, half, dim)
    new = state.copy()
    new[:, 1] = state[:, 1] + np.uint64(used)
    return found, new


def _threefry_at(state: Array, key: Words, shape: tuple[int, ...]) -> tuple[Words, int]:
    used = math.prod(shape)
    rank = (1,) * len(shape)
    counter = state[:, 1].reshape(-1, *rank) + np.arange(used, dtype=np.uint64).reshape(shape)
    keys = tuple(word.reshape(-1, *rank) for word in key)
    return threefry((_low(counter), _high(counter)), keys), used


def _half_shape(shape: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """The dim that is filled in pairs (the first even one, else the longest) and the shape with it halved."""
    if not shape:
        return 0, (1,)
    even = [dim for dim, size in enumerate(shape) if size % 2 == 0]
    dim = even[0] if even else max(range(len(shape)), key=lambda place: shape[place])
    return dim, (*shape[:dim], -(-shape[dim] // 2), *shape[dim + 1 :])


def _interleaved(words: Words, shape: tuple[int, ...], half: tuple[int, ...], dim: int) -> Array:
    if not shape:
        return words[0].reshape(-1)
    pairs = np.stack(words, axis=2 + dim)
    whole = pairs.reshape(-1, *half[:dim], 2 * half[dim], *half[dim + 1 :])
    return whole[(slice(None), *(slice(size) for size in shape))]


def philox_bits(state: Array, shape: tuple[int, ...], bits: int) -> tuple[Array, Array]:
    """Words of `bits` bits and the new state, for every instance.

    Args:
        state: ``(instances, 2 or 3)`` of 64 bits: the key, then the counter (low word first where it has two).
    """
    key = (_low(state[:, 0]), _high(state[:, 0]))
    if state.shape[1] >= 3:
        low, high = state[:, 1], state[:, 2]
    else:
        low, high = state[:, 1], state[:, 0]
    count = math.prod(shape)
    blocks = -(-count * (2 if bits == 64 else 1) // 4)
    line = low[:, None] + np.arange(blocks, dtype=np.uint64)
    carried = high[:, None] + (line < low[:, None]).astype(np.uint64)
    counter = (_low(line), _high(line), _low(carried), _high(carried))
    words = philox(counter, (key[0][:, None], key[1][:, None]))
    if bits == 64:
        words = (_long(words[0], words[1]), _long(words[2], words[3]))
    found = np.stack(words, axis=-1).reshape(state.shape[0], -1)[:, :count].reshape(-1, *shape)
    new = state.copy()
    new[:, 1] = low + np.uint64(blocks)
    if state.shape[1] >= 3:
        new[:, 2] = high + (new[:, 1] < low).astype(np.uint64)
    return found, new


def _bit_generator(context: Context, call: HloCall, operands: Operands) -> Results:
    """Bits and the new state; the default algorithm is Philox, as on XLA's CPU."""
    algorithm = call.need("algorithm", str)
    if algorithm not in ("rng_three_fry", "rng_philox", "rng_default"):
        raise HloError(f"rng-bit-generator has no algorithm {algorithm!r}")
    (operand,) = operands
    state_kind, data = call.results
    state = _as_long(np.asarray(operand))
    bits = narrow_bits(data.dtype) or element_bits(data.dtype)
    make = threefry_bits if algorithm == "rng_three_fry" else philox_bits
    words, new = make(state, data.shape, 64 if bits == 64 else 32)
    kept = words if bits in (32, 64) else (words & _U32((1 << bits) - 1)).astype(f"u{data.numpy.itemsize}")
    found = kept.view(data.numpy) if kept.dtype.itemsize == data.numpy.itemsize else kept.astype(data.numpy)
    xp = context.xp
    return xp.asarray(_as_kind(new, state_kind)), xp.asarray(found)


def _as_long(state: Array) -> Array:
    """The state as 64-bit words; a state of 32-bit words is packed low word first."""
    return state if state.dtype == np.uint64 else np.ascontiguousarray(state).view(np.uint64)


def _as_kind(state: Array, kind: ArrayType) -> Array:
    return state if kind.numpy == np.uint64 else np.ascontiguousarray(state).view(kind.numpy)


def _generator(context: Context, call: HloCall, rank: int) -> Any:
    # Stable across runs and processes: the name of the operation, the rank and the seed of the run.
    name = [ord(letter) for letter in call.name] or [0]
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([context.seed, rank, *name])))


def _rng(context: Context, call: HloCall, operands: Operands) -> Results:
    """``rng``: HLO does not say which numbers; these depend on the run's seed, the operation's name and the rank."""
    kind = call.result
    distribution = call.need("distribution", str)
    first, second = (np.asarray(operand).astype(np.float64) for operand in operands)
    rows: list[Array] = []
    for place, rank in enumerate(context.ranks):
        generator = _generator(context, call, rank)
        if distribution == "rng_normal":
            rows.append(generator.normal(first[place], second[place], kind.shape))
        elif distribution == "rng_uniform":
            rows.append(generator.uniform(first[place], second[place], kind.shape))
        else:
            raise HloError(f"rng has no distribution {distribution!r}")
    return (context.xp.asarray(convert.by_value(np, np.stack(rows), kind.dtype)),)


OPCODES: dict[str, Evaluator] = {
    "rng": _rng,
    "rng-bit-generator": _bit_generator,
}
