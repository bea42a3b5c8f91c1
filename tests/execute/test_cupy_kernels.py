"""The arithmetic and the indexing of the kernels: their source, compiled for the host, against the reference collectives.

What only a GPU can show is in tests/gpu: how threads run side by side, and how fast.
"""

from __future__ import annotations

import shutil
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dtir.execute import semantics
from dtir.execute.dtypes import is_floating
from dtir.execute.kernels import (
    ELEMENTS,
    FOLDS,
    OPTIONS,
    TABLE,
    Box,
    Geometry,
    blocks,
    can_fold,
    fold,
    kernel_source,
    pairs,
    replicate,
)
from dtir.execute.kernels.host import CompileError, HostKernels, host_text
from dtir.ir.reductions import ReductionKind
from tests.helpers.kernels import SMALL, Memory, element_dtype, equal_bits, host_kernels

__all__ = ["host_kernels"]

FLOATS = ("f32", "f64", "f16", "bf16")
MAIN = ("f32", "f64", "i32", "bf16", "f16")
"""The element types of the contract that every back end keeps."""


def numbers(element: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Values whose sums depend on their order; of floats also zeros, infinities, NaN, denormals and ties."""
    generator = np.random.default_rng((seed, *shape))
    dtype = element_dtype(element)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return generator.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    found = (generator.standard_normal(shape) * 10.0 ** generator.integers(-3, 4, shape)).astype(dtype)
    flat = found.reshape(-1)
    special = np.asarray([np.inf, -np.inf, np.nan, 1.0, 1 + 2.0**-9, 1 + 2.0**-12, 1e-40, 6e-8, 3.4e38, 65504.0, 0.0])
    where = generator.random(flat.size) < 0.2
    with np.errstate(all="ignore"):
        flat[where] = generator.choice(special, int(where.sum())).astype(dtype)
    return found


def folded(kernels: HostKernels, element: str, kind: ReductionKind, memory: Memory, members: int, results: int) -> None:
    kernels.run(
        fold(memory.addresses[:members], memory.addresses[members:], element, kind, memory.arrays[0].size, SMALL)
    )
    assert len(memory.arrays) == members + results
    assert memory.intact()


def wanted_of(parts: np.ndarray, kind: ReductionKind) -> np.ndarray:
    with np.errstate(all="ignore"):
        return semantics.all_reduce(np, parts, kind)


def agrees(found: np.ndarray, wanted: np.ndarray, kind: ReductionKind) -> bool:
    # Of two zeros of different signs either is the greater: numpy's choice depends on the machine.
    return equal_bits(found, wanted, signed_zeros=kind not in (ReductionKind.MAX, ReductionKind.MIN))


@pytest.mark.parametrize("members", [1, 2, 3, 4, 5, 6, 7, 8, 16, 64])
@pytest.mark.parametrize("element", MAIN)
@pytest.mark.parametrize("kind", [ReductionKind.SUM, ReductionKind.PRODUCT, ReductionKind.MAX, ReductionKind.MIN])
def test_folds(host_kernels: HostKernels, kind: ReductionKind, element: str, members: int) -> None:
    for count in (1, 37, 64, 1000):
        parts = numbers(element, (members, count))
        for results in {1, members} if members <= 8 else {1}:
            memory = Memory([*parts, *[np.zeros_like(parts[0])] * results], [0] * (members + results))
            folded(host_kernels, element, kind, memory, members, results)
            wanted = wanted_of(parts, kind)
            assert all(agrees(found, wanted, kind) for found in memory.arrays[members:])


@pytest.mark.parametrize("kind", list(FOLDS))
@pytest.mark.parametrize("element", list(ELEMENTS))
def test_every_type_and_reduction(host_kernels: HostKernels, element: str, kind: ReductionKind) -> None:
    if not can_fold(element, kind):
        assert is_floating(element_dtype(element))
        with pytest.raises(ValueError, match="no kernel folds"):
            fold([0, 16], [32], element, kind, 4, SMALL)
        return
    parts = numbers(element, (3, 101), seed=1)
    memory = Memory([*parts, np.zeros_like(parts[0])], [0] * 4)
    folded(host_kernels, element, kind, memory, 3, 1)
    assert agrees(memory.arrays[3], wanted_of(parts, kind), kind)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    element=st.sampled_from(list(ELEMENTS)),
    members=st.integers(1, 9),
    count=st.integers(0, 200),
    shift=st.lists(st.integers(0, 15), min_size=10, max_size=10),
    alike=st.booleans(),
)
def test_addresses_need_no_alignment(
    host_kernels: HostKernels, element: str, members: int, count: int, shift: list[int], alike: bool
) -> None:
    size = ELEMENTS[element]
    offsets = [shift[0 if alike else number] * size % 64 for number in range(members)] + [shift[0] * size % 64]
    parts = numbers(element, (members, count), seed=2)
    memory = Memory([*parts, np.zeros(count, parts.dtype)], offsets)
    folded(host_kernels, element, ReductionKind.SUM, memory, members, 1)
    assert equal_bits(memory.arrays[members], wanted_of(parts, ReductionKind.SUM))


@pytest.mark.parametrize("members", [2, 3, 4, 8])
@pytest.mark.parametrize("element", MAIN)
def test_results_in_the_place_of_operands(host_kernels: HostKernels, element: str, members: int) -> None:
    parts = numbers(element, (members, 133), seed=4)
    memory = Memory(list(parts), [0] * members)
    launch = fold(memory.addresses, memory.addresses, element, ReductionKind.SUM, 133, SMALL)
    assert launch.expression.endswith("true>")
    host_kernels.run(launch)
    assert all(equal_bits(found, wanted_of(parts, ReductionKind.SUM)) for found in memory.arrays)


@pytest.mark.parametrize("members", [2, 8, 5])
@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_partial_sums_keep_the_accumulator(host_kernels: HostKernels, element: str, members: int) -> None:
    parts = numbers(element, (members, 77), seed=5)
    memory = Memory([*parts, np.zeros(77, np.float32)], [0] * (members + 1))
    host_kernels.run(
        fold(
            memory.addresses[:members], memory.addresses[members:], element, ReductionKind.SUM, 77, SMALL, result="f32"
        )
    )
    with np.errstate(all="ignore"):
        assert equal_bits(memory.arrays[-1], semantics.all_reduce(np, parts.astype(np.float32), ReductionKind.SUM))
    assert memory.intact()


@pytest.mark.parametrize("element", ["f32", "bf16"])
def test_more_members_than_a_table_holds(host_kernels: HostKernels, element: str) -> None:
    parts = numbers(element, (TABLE + 7, 50), seed=6)
    slab = np.ascontiguousarray(parts)
    out = np.zeros(50, slab.dtype)
    step = slab.strides[0]
    members = [slab.ctypes.data + place * step for place in range(len(parts))]
    host_kernels.run(fold(members, [out.ctypes.data], element, ReductionKind.SUM, 50, SMALL))
    assert equal_bits(out, wanted_of(parts, ReductionKind.SUM))
    with pytest.raises(ValueError, match="unequal distances"):
        fold([*members[:-1], members[-1] + 64], [out.ctypes.data], element, ReductionKind.SUM, 50, SMALL)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.data(),
    members=st.integers(1, 9),
    dims=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    size=st.sampled_from([1, 2, 4, 8]),
)
def test_all_to_all(host_kernels: HostKernels, data: st.DataObject, members: int, dims: list[int], size: int) -> None:
    split, concat = data.draw(st.integers(0, len(dims) - 1)), data.draw(st.integers(0, len(dims) - 1))
    shape = [extent * members if dim == split else extent for dim, extent in enumerate(dims)]
    slab = np.random.default_rng(7).integers(0, 255, (members, *shape)).astype(f"u{size}")
    wanted = np.asarray(semantics.all_to_all(np, slab, split, concat))
    out = np.zeros(wanted.shape, slab.dtype)
    box, source_step, target_step = exchange_box(shape, split, concat, members, size)
    for launch in blocks(
        [row.ctypes.data for row in slab], [row.ctypes.data for row in out], box, source_step, target_step, SMALL
    ):
        host_kernels.run(launch)
    assert (out == wanted).all()


def exchange_box(shape: list[int], split: int, concat: int, members: int, size: int) -> tuple[Box, int, int]:
    from dtir.execute.backends.cupy_moves import exchange_box as made

    return made(tuple(shape), split, concat, members, size)


@pytest.mark.parametrize("members", [1, 3, TABLE + 2])
def test_blocks_of_many_members(host_kernels: HostKernels, members: int) -> None:
    slab = np.random.default_rng(8).integers(0, 255, (members, members, 3)).astype(np.uint8)
    out = np.zeros_like(slab)
    box, source_step, target_step = exchange_box([members, 3], 0, 0, members, 1)
    launches = blocks(
        [row.ctypes.data for row in slab], [row.ctypes.data for row in out], box, source_step, target_step, SMALL
    )
    assert len(launches) == (4 if members > TABLE else 1)
    for launch in launches:
        host_kernels.run(launch)
    assert (out == slab.transpose(1, 0, 2)).all()


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(count=st.integers(1, 70), size=st.integers(1, 100), shift=st.integers(0, 15))
def test_pairs_and_copies(host_kernels: HostKernels, count: int, size: int, shift: int) -> None:
    generator = np.random.default_rng(9)
    sources = [generator.integers(0, 255, size).astype(np.uint8) for _ in range(count)]
    memory = Memory([*sources, *[np.zeros(size, np.uint8)] * count], [shift] * (2 * count))
    for launch in pairs(memory.addresses[:count], memory.addresses[count:], size, SMALL):
        host_kernels.run(launch)
    assert all((found == wanted).all() for found, wanted in zip(memory.arrays[count:], sources, strict=True))
    for launch in replicate(memory.addresses[0], memory.addresses[count:], size, SMALL):
        host_kernels.run(launch)
    assert all((found == sources[0]).all() for found in memory.arrays[count:])
    assert memory.intact()


def test_the_comparison_can_fail(host_kernels: HostKernels) -> None:
    parts = np.asarray([[1e8], [1.0], [-1e8]], np.float32)
    memory = Memory([*parts, np.zeros(1, np.float32)], [0] * 4)
    folded(host_kernels, "f32", ReductionKind.SUM, memory, 3, 1)
    assert equal_bits(memory.arrays[3], np.zeros(1, np.float32))
    assert not equal_bits(memory.arrays[3], np.ones(1, np.float32))
    assert not equal_bits(np.zeros(1, np.float32), -np.zeros(1, np.float32))


@pytest.mark.usefixtures("host_kernels")
def test_a_refused_source_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CompileError, match="refuses the kernels"):
        HostKernels(["no_such_kernel<3>"])
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(CompileError, match=r"no C\+\+ compiler was found"):
        HostKernels()


# -- for a GPU ------------------------------------------------------------------------------------------------------------


def instances() -> list[str]:
    geometry = Geometry(132 * 32)
    folds = [
        fold([256 * m for m in range(k)], [65536 + 256 * m for m in range(ko)], element, kind, 64, geometry).expression
        for element in ELEMENTS
        for kind in FOLDS
        if can_fold(element, kind)
        for k, ko in (((2, 2), (4, 1), (8, 8), (5, 5)) if element in MAIN and kind is ReductionKind.SUM else ((8, 1),))
    ]
    wide = [
        fold([0, 256], [4096], name, ReductionKind.SUM, 64, geometry, result="f32").expression
        for name in ("f16", "bf16")
    ]
    place = fold([0, 256], [0, 256], "f32", ReductionKind.SUM, 64, geometry).expression
    far = fold([256 * m for m in range(TABLE + 1)], [1 << 20], "bf16", ReductionKind.SUM, 64, geometry).expression
    moved = [f"{name}<{size}>" for name in ("copy_blocks", "copy_pairs", "replicate") for size in (1, 2, 4, 8, 16)]
    return [*folds, *wide, place, far, *moved]


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
def test_nvrtc_compiles_every_kernel(architecture: str) -> None:
    """NVRTC needs no driver and no GPU."""
    if find_spec("cupy") is None:
        pytest.skip("cupy is not installed: it brings the binding of NVRTC")
    pytest.importorskip("cupy", reason="cupy cannot be imported", exc_type=ImportError)
    from cupy.cuda import nvrtc

    try:
        version = nvrtc.getVersion()
    except RuntimeError as error:
        pytest.skip(f"NVRTC cannot be loaded: {str(error).splitlines()[0]}")
    if architecture == "sm_100" and version < (12, 8):
        pytest.skip(f"NVRTC {version[0]}.{version[1]} knows no {architecture}")
    program = nvrtc.createProgram(kernel_source(), "kernels.cu", (), ())
    wanted = instances()
    for expression in wanted:
        nvrtc.addNameExpression(program, expression)
    try:
        nvrtc.compileProgram(program, (*OPTIONS, f"-arch={architecture}"))
    except nvrtc.NVRTCError as error:
        pytest.fail(f"{error}: {nvrtc.getProgramLog(program)[:2000]}")
    assert all(nvrtc.getLoweredName(program, expression) for expression in wanted)


def test_the_host_text_has_an_entry_for_every_expression() -> None:
    text = host_text(["copy_pairs<1>", "copy_pairs<2>"])
    assert text.startswith("#define HOST_EMU")
    assert text.count('extern "C" void kernel_') == 2
    assert shutil.which("no-such-compiler") is None
