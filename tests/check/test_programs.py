"""Forms of one program compared: what is equal, what differs and where, what cannot be compared."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from dtir.check import Checked, Form, check_programs
from dtir.check.programs import Verdict
from dtir.execute.archive import Archive
from dtir.importers import load_bytes, load_path
from dtir.ir.program import DistributedTaskIR

DIMS = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
GLOBAL = """\
HloModule m, num_partitions=4

ENTRY %main (x: f32[8,6], w: f32[6,4]) -> f32[8,4] {
  %x = f32[8,6]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}, metadata={op_name="x"}
  %w = f32[6,4]{1,0} parameter(1), sharding={replicated}, metadata={op_name="w"}
  %t = f32[8,6]{1,0} tanh(%x), metadata={op_name="jit(f)/tanh" source_file="f.py" source_line=3}
  %d = f32[8,4]{1,0} dot(%t, %w), DIMS, metadata={op_name="jit(f)/dot" source_file="f.py" source_line=4}
  ROOT %n = f32[8,4]{1,0} negate(%d), sharding={devices=[4,1]<=[4]}, metadata={op_name="jit(f)/neg" source_file="f.py" source_line=5}
}
""".replace("DIMS", DIMS)
DIVIDED = """\
HloModule m, num_partitions=4

ENTRY %main (x: f32[2,6], w: f32[6,4]) -> f32[2,4] {
  %p.1 = f32[2,6]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}, metadata={op_name="x"}
  %p.2 = f32[6,4]{1,0} parameter(1), sharding={replicated}, metadata={op_name="w"}
  %t.9 = f32[2,6]{1,0} tanh(%p.1), metadata={op_name="jit(f)/tanh" source_file="f.py" source_line=3}
  %d.9 = f32[2,4]{1,0} dot(%t.9, %p.2), DIMS, metadata={op_name="jit(f)/dot" source_file="f.py" source_line=4}
  ROOT %n.9 = f32[2,4]{1,0} negate(%d.9), metadata={op_name="jit(f)/neg" source_file="f.py" source_line=5}
}
""".replace("DIMS", DIMS)
RANDOM = "%zero = f32[] constant(0)\n  %t.9 = f32[2,6]{1,0} rng(%zero, %zero), distribution=rng_uniform"


def program(text: str) -> DistributedTaskIR:
    loaded = load_bytes(text.encode(), name="m.hlo")
    assert loaded.program is not None, [item.render() for item in loaded.diagnostics]
    return loaded.program


def check(*texts: str) -> Checked:
    return check_programs([Form(f"form{number}", program(text)) for number, text in enumerate(texts)])


def test_a_program_and_its_partitioned_form_are_equal() -> None:
    found = check(GLOBAL, DIVIDED)
    assert found.verdict is Verdict.EQUAL
    assert [item.layout for item in found.steps[0].outputs] == ["stated"]
    assert found.guilty is None


def test_either_form_may_come_first() -> None:
    assert check(DIVIDED, GLOBAL).verdict is Verdict.EQUAL


def test_the_first_value_that_differs_is_named_on_both_sides() -> None:
    wrong = DIVIDED.replace("tanh(%p.1)", "exponential(%p.1)")
    found = check(GLOBAL, wrong)
    assert found.verdict is Verdict.DIFFERENT
    assert found.guilty is not None
    parting = found.guilty.parting
    assert parting is not None
    assert (parting.before.name, parting.after.name) == ("t", "t.9")
    assert (parting.before.source, parting.after.op_name) == ("f.py:3", "jit(f)/tanh")
    assert (parting.agreement.size, parting.outputs_only) == (48, False)
    assert [item.code for item in found.problems] == ["check.different"]


def test_blocks_on_other_ranks_differ_from_the_stated_layout() -> None:
    moved = DIVIDED.replace("ROOT %n.9 = f32[2,4]{1,0} negate(%d.9)", "%n.9 = f32[2,4]{1,0} negate(%d.9)").replace(
        "\n}\n",
        "\n  ROOT %c = f32[2,4]{1,0} collective-permute(%n.9), channel_id=1, source_target_pairs={{0,1},{1,2},{2,3},{3,0}}\n}\n",
    )
    assert check(GLOBAL, moved).verdict is Verdict.DIFFERENT


def test_the_first_guilty_pass_of_a_sequence() -> None:
    wrong = DIVIDED.replace("negate(%d.9)", "abs(%d.9)")
    found = check(GLOBAL, DIVIDED, DIVIDED, wrong, wrong)
    assert [step.verdict.value for step in found.steps] == ["equal", "equal", "different", "different"]
    assert found.guilty is not None
    assert (found.guilty.label, found.guilty.against) == ("form3", "form2")
    assert found.guilty.parting is not None
    assert found.guilty.parting.after.name == "n.9"


def test_without_metadata_the_outputs_are_named() -> None:
    bare = re.sub(r", metadata=\{[^}]*\}", "", DIVIDED.replace("tanh(", "exponential("))
    found = check(GLOBAL, bare)
    assert found.guilty is not None
    assert found.guilty.parting is not None
    assert found.guilty.parting.outputs_only
    assert (found.guilty.parting.before.name, found.guilty.parting.after.name) == ("n", "n.9")


def test_a_value_that_a_pass_does_without_is_no_difference() -> None:
    """An instruction with another's origin that holds something else, and that nothing wrong comes from, is not named."""
    more = DIVIDED.replace(
        "  %d.9",
        '  %unused = f32[2,6]{1,0} exponential(%p.1), metadata={op_name="jit(f)/tanh" source_file="f.py" source_line=3}\n  %d.9',
    ).replace("negate(%d.9)", "abs(%d.9)")
    found = check(GLOBAL, more)
    assert found.guilty is not None
    assert found.guilty.parting is not None
    assert found.guilty.parting.before.name == "n"


LOOP = """\
HloModule m, num_partitions=2

%body (s: (s32[], f32[4])) -> (s32[], f32[4]) {
  %s = (s32[], f32[4]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %v = f32[4] get-tuple-element(%s), index=1
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one), metadata={op_name="while/body/next"}
  %two = f32[4] add(%v, %v), metadata={op_name="while/body/double"}
  ROOT %r = (s32[], f32[4]) tuple(%next, %two)
}

%condition (s: (s32[], f32[4])) -> pred[] {
  %s = (s32[], f32[4]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %n = s32[] constant(3)
  ROOT %lt = pred[] compare(%i, %n), direction=LT
}

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4] parameter(0), sharding={replicated}
  %zero = s32[] constant(0)
  %t = (s32[], f32[4]) tuple(%zero, %x)
  %w = (s32[], f32[4]) while(%t), condition=%condition, body=%body, metadata={op_name="while"}
  ROOT %y = f32[4] get-tuple-element(%w), index=1
}
"""


def test_inside_a_loop() -> None:
    found = check(LOOP, LOOP.replace("add(%v, %v)", "multiply(%v, %v)"))
    assert found.guilty is not None
    assert found.guilty.parting is not None
    assert found.guilty.parting.before.name == "two"


# -- not comparable -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (DIVIDED.replace("num_partitions=4", "num_partitions=2").replace("[4,1]<=[4]", "[2,1]<=[2]"), "check.interface"),
        (DIVIDED.replace("f32[", "f64["), "check.interface"),
        (DIVIDED.replace("tanh(%p.1)", 'custom-call(%p.1), custom_call_target="secret"'), "run.unknown_op"),
        (DIVIDED.replace("%t.9 = f32[2,6]{1,0} tanh(%p.1)", RANDOM), "check.random"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_says_why(text: str, code: str) -> None:
    found = check(GLOBAL, text)
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert code in [item.code for item in found.problems]
    assert all(item.message.startswith("form1") for item in found.problems)


def test_a_reference_that_does_not_run_ends_the_check() -> None:
    found = check(GLOBAL.replace("tanh(%x)", 'custom-call(%x), custom_call_target="secret"'), DIVIDED)
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert found.problems[0].message.startswith("form0")


def test_one_form_is_no_check() -> None:
    with pytest.raises(ValueError, match="1 forms"):
        check(GLOBAL)


# -- real programs ------------------------------------------------------------------------------------------------------


def _real(folder: Path, name: str, *forms: str, archive: bool = True) -> Checked:
    inputs = Archive.open(folder / f"{name}.io.npz") if archive else None
    made: list[Form] = []
    for form in forms:
        loaded = load_path(folder / f"{name}.{form}.hlo").program
        assert loaded is not None
        made.append(Form(form, loaded))
    return check_programs(made, inputs=inputs)


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("dynamic_slice_oob_start", Verdict.DIFFERENT),
        ("dynamic_slice_oob_start_repl_operand", Verdict.DIFFERENT),
        ("dynamic_slice_in_range_control", Verdict.EQUAL),
        ("dynamic_update_slice_negative_start", Verdict.EQUAL),
    ],
)
def test_real_miscompiles_and_their_controls(shared_data: Path, name: str, verdict: Verdict) -> None:
    folder = shared_data / "inputs" / "hlo_jax" / "known_bugs"
    assert _real(folder, name, "sharded", "spmd").verdict is Verdict.EQUAL
    found = _real(folder, name, "sharded", "post")
    assert found.verdict is verdict
    if verdict is Verdict.DIFFERENT:
        assert found.guilty is not None
        assert found.guilty.parting is not None
        assert found.guilty.parting.before.operation == "hlo.dynamic-slice"
        assert found.guilty.parting.before.source == found.guilty.parting.after.source


def test_the_pass_that_broke_a_real_program(shared_data: Path) -> None:
    folder = shared_data / "inputs" / "hlo_jax" / "known_bugs"
    forms: list[Form] = []
    for path in sorted((folder / "passes").glob("*.txt")):
        loaded = load_path(path).program
        assert loaded is not None
        forms.append(Form(path.name, loaded))
    found = check_programs(forms, inputs=Archive.open(folder / "dynamic_slice_oob_start.io.npz"))
    assert found.guilty is not None
    assert found.guilty.label.startswith("0010.simplification.after_algsimp")
    assert found.guilty.against.startswith("0006.spmd-partitioner.after_spmd-partitioning")


@pytest.mark.parametrize(
    "name",
    ["transformer4l_dp2tp4_train", "ring_attention_unrolled", "scan_layers_dp2tp4_fwdbwd", "uneven_padding_gspmd"],
)
def test_real_programs_through_the_compiler(shared_data: Path, name: str) -> None:
    folder = shared_data / "inputs" / "hlo_jax" / "cpu8"
    if not (folder / f"{name}.sharded.hlo").exists():
        pytest.skip(f"{name} has no dump before partitioning")
    for archive in (True, False):
        found = _real(folder, name, "sharded", "spmd", "post", archive=archive)
        assert found.verdict is Verdict.EQUAL, [item.render() for item in found.problems]


def test_a_changed_collective_of_a_real_program_is_found(shared_data: Path) -> None:
    folder = shared_data / "inputs" / "hlo_jax" / "cpu8"
    text = (folder / "transformer4l_dp2tp4_train.spmd.hlo").read_text()
    line = next(
        line for line in text.splitlines() if re.match(r"\s+%\S+ = \S+ subtract\(", line) and "jit(step)/sub" in line
    )
    whole = load_path(folder / "transformer4l_dp2tp4_train.sharded.hlo").program
    assert whole is not None
    wrong = program(text.replace(line, line.replace(" subtract(", " add(")))
    found = check_programs([Form("sharded", whole), Form("spmd", wrong)])
    assert found.guilty is not None
    assert found.guilty.parting is not None
    assert found.guilty.parting.before.op_name == "jit(step)/sub"
    name = re.search(r"%(\S+) =", line)
    assert name is not None
    assert found.guilty.parting.after.name == name[1]
    assert np.isfinite(found.guilty.parting.agreement.max_error)
