"""What breaks a rule of Shardy: one case for each way, at the operation, and a valid neighbour beside it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dtir.importers.stablehlo.importer import import_mlir
from dtir.schema.diagnostics import Severity

MESH = (
    'sdy.mesh @mesh = <["x"=4, "y"=2, "z"=2]>\nsdy.mesh @one = <[], device_ids=[0]>\n'
    f'sdy.mesh @turn = <["x"=4, "y"=2, "z"=2], device_ids={list(range(15, -1, -1))}>\n'
)


def findings(text: str) -> list[tuple[str, int]]:
    return [(item.code, int(item.path[1])) for item in import_mlir(text).diagnostics if item.severity is Severity.ERROR]


def add(sharding: str, kind: str = "tensor<8x8xf32>") -> str:
    return (
        MESH
        + f"func.func @f(%a: {kind}) -> {kind} {{\n"
        + f"  %0 = stablehlo.add %a, %a {{sdy.sharding = {sharding}}} : {kind}\n"
        + f"  return %0 : {kind}\n}}\n"
    )


@pytest.mark.parametrize(
    ("sharding", "code"),
    [
        ('<@none, [{}, {"x"}]>', "shardy.unknown_mesh"),
        ('<@mesh, [{"x"}]>', "sharding.rank"),
        ('<@mesh, [{}p1, {"x"}]>', "shardy.priority"),
        ('<@mesh, [{"w"}, {}]>', "sharding.unknown_axis"),
        ('<mesh<["a"=2]>, [{"x"}, {}]>', "sharding.unknown_axis"),
        ('<@mesh, [{}, {}], replicated={"w"}>', "sharding.unknown_axis"),
        ('<@mesh, [{"x"}, {"x"}]>', "sharding.axis_reuse"),
        ('<@mesh, [{"x"}, {}], unreduced={"x"}>', "sharding.axis_reuse"),
        ('<@mesh, [{"x":(1)2}, {}], replicated={"x"}>', "sharding.axis_reuse"),
        ('<@mesh, [{"x":(0)2}, {}]>', "shardy.sub_axis"),
        ('<@mesh, [{"x":(2)1}, {}]>', "shardy.sub_axis"),
        ('<@mesh, [{"x":(1)4}, {}]>', "shardy.sub_axis"),
        ('<@mesh, [{"x":(3)2}, {}]>', "shardy.sub_axis"),
        ('<@mesh, [{"x":(1)2, "x":(2)2}, {}]>', "shardy.sub_axis"),
        ('<@mesh, [{}, {}], replicated={"y", "x"}>', "shardy.axis_order"),
        ('<@mesh, [{}, {}], unreduced={"x":(2)2, "x":(1)2}>', "shardy.axis_order"),
        ("<@one, [{}, {}]>", "shardy.maximal"),
    ],
)
def test_shardings(sharding: str, code: str) -> None:
    assert findings(add(f"#sdy.sharding_per_value<[{sharding}]>")) == [(code, 5)]


@pytest.mark.parametrize(
    "sharding",
    [
        '<@mesh, [{"x", ?}p1, {"y"}]>',
        '<@mesh, [{"x":(2)2, "x":(1)2}, {?}]>',
        '<@mesh, [{"x":(1)2, "y", "x":(2)2}, {}]>',
        '<@mesh, [{}, {}], replicated={"x", "z"}, unreduced={"y"}>',
        '<mesh<["a"=2]>, [{"a"}, {}]>',
        "<@one, []>",
    ],
)
def test_shardings_that_are_right(sharding: str) -> None:
    assert findings(add(f"#sdy.sharding_per_value<[{sharding}]>")) == []


def test_the_form_of_the_attribute() -> None:
    assert findings(add('#sdy.sharding<@mesh, [{}, {"x"}]>')) == [("shardy.attribute", 5)]
    assert findings(add("#sdy.sharding_per_value<[<@mesh, [{}, {}]>, <@mesh, [{}, {}]>]>")) == [("shardy.attribute", 5)]
    listed = (
        MESH + "func.func @f(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>}) { return }\n"
    )
    assert findings(listed) == [("shardy.attribute", 4)]
    token = MESH + 'func.func @f(%a: !stablehlo.token {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) { return }\n'
    assert findings(token) == [("sharding.rank", 4)]


@pytest.mark.parametrize(
    "mesh",
    [
        '<["a"=0]>',
        '<["a"=2, "a"=2]>',
        "<[], device_ids=[-1]>",
        "<[], device_ids=[0, 1]>",
        '<["a"=2], device_ids=[0]>',
        '<["a"=2], device_ids=[1, 1]>',
        '<["a"=2], device_ids=[2, 1]>',
    ],
)
def test_meshes(mesh: str) -> None:
    assert findings(f"sdy.mesh @m = {mesh}\nfunc.func @f() {{ return }}\n") == [("shardy.mesh", 1)]


def collective(stated: str, operand: str = '<@mesh, [{"x"}, {"y"}]>', kind: str = "tensor<16x16xf32>") -> str:
    attribute = f" {{sdy.sharding = #sdy.sharding{operand}}}" if operand else ""
    return (
        MESH
        + f"func.func @f(%arg0: {kind}{attribute}) -> {kind} {{\n"
        + f"  %0 = sdy.{stated} : {kind}\n"
        + f"  return %0 : {kind}\n}}\n"
    )


@pytest.mark.parametrize(
    ("stated", "code"),
    [
        ('all_gather [{"y"}, {}] %arg0 out_sharding=<@mesh, [{"x"}, {"y"}]>', "collective.gather_dim"),
        ('all_gather [{"x"}, {}] %arg0 out_sharding=<@mesh, [{"x"}, {"y"}]>', "sharding.mismatch"),
        ('all_gather [{"x"}] %arg0 out_sharding=<@mesh, [{}, {"y"}]>', "sharding.rank"),
        ('all_gather [{"x", "x"}, {}] %arg0 out_sharding=<@mesh, [{}, {"y"}]>', "sharding.axis_reuse"),
        ('all_slice [{"z"}, {}] %arg0 out_sharding=<@mesh, [{"x"}, {"y", "z"}]>', "sharding.mismatch"),
        ('all_to_all [] %arg0 out_sharding=<@mesh, [{"x"}, {"y"}]>', "collective.all_to_all_dims"),
        ('all_to_all [{"x"}: 0->2] %arg0 out_sharding=<@mesh, [{}, {"y", "x"}]>', "collective.all_to_all_dims"),
        ('all_to_all [{"x"}: 0->0] %arg0 out_sharding=<@mesh, [{"x"}, {"y"}]>', "collective.all_to_all_dims"),
        ('all_to_all [{"y"}: 0->1] %arg0 out_sharding=<@mesh, [{}, {"y", "x"}]>', "collective.all_to_all_dims"),
        ('collective_permute %arg0 out_sharding=<@mesh, [{"y"}, {"x"}]>', "sharding.mismatch"),
        ('collective_permute %arg0 out_sharding=<mesh<["a"=4]>, [{"a"}, {}]>', "shardy.mesh_mismatch"),
        ('all_reduce {"x"} %arg0 out_sharding=<@mesh, [{"x"}, {"y"}]>', "collective.reduce_sharded"),
        ('all_reduce {"z"} %arg0 out_sharding=<@mesh, [{"x"}, {"y"}], unreduced={"z"}>', "collective.incomplete_axes"),
        ('all_reduce {} %arg0 out_sharding=<@mesh, [{"x"}, {}]>', "sharding.mismatch"),
        ('reduce_scatter [{}, {"z"}] %arg0 out_sharding=<@mesh, [{"x"}, {"z", "y"}]>', "sharding.mismatch"),
        ('sharded_to_unreduced [{"x"}, {}] %arg0 out_sharding=<@mesh, [{}, {"y"}]>', "sharding.mismatch"),
        ('sharded_to_unreduced [{"x"}, {}] %arg0 out_sharding=<@mesh, [{}, {"y"}], unreduced=max{"x"}>',
         "collective.wrong_reduction"),
        ('replicated_to_unreduced {"x"} %arg0 out_sharding=<@mesh, [{"x"}, {"y"}]>', "collective.reduce_sharded"),
        ('replicated_to_unreduced {} %arg0 out_sharding=<@mesh, [{"x"}, {"y"}]>', "mlir.missing_attribute"),
        ('reshard %arg0 <@mesh, [{"x"}]>', "sharding.rank"),
        ('reshard %arg0 <@mesh, [{}, {}], unreduced=max{"x"}>', "collective.wrong_reduction"),
    ],
)  # fmt: skip
def test_collectives(stated: str, code: str) -> None:
    assert findings(collective(stated)) == [(code, 5)]
    # What is ill-formed is shown all the same, and nothing is concluded from it.
    assert import_mlir(collective(stated)).programs[0].program is not None


@pytest.mark.parametrize(
    "stated",
    [
        'all_gather [{"x"}, {"y"}] %arg0 out_sharding=<@mesh, [{}, {}]>',
        'all_gather [{"x":(2)2}, {}] %arg0 out_sharding=<@mesh, [{"x":(1)2}, {"y"}]>',
        'all_slice [{"z"}, {}] %arg0 out_sharding=<@mesh, [{"x", "z"}, {"y"}]>',
        'all_to_all [{"x"}: 0->1] %arg0 out_sharding=<@mesh, [{}, {"y", "x"}]>',
        'collective_permute %arg0 out_sharding=<@turn, [{"x"}, {"z"}]>',
        'all_reduce {"z"} %arg0 out_sharding=<@mesh, [{"x"}, {"y"}]>',
        'reduce_scatter [{}, {"z"}] %arg0 out_sharding=<@mesh, [{"x"}, {"y", "z"}]>',
        'sharded_to_unreduced [{"x"}, {}] %arg0 out_sharding=<@mesh, [{}, {"y"}], unreduced={"x"}>',
        'replicated_to_unreduced {"z"} %arg0 out_sharding=<@mesh, [{"x"}, {"y"}], unreduced={"z"}>',
        'reshard %arg0 <@mesh, [{}, {"z"}]>',
    ],
)
def test_collectives_that_are_right(stated: str) -> None:
    assert findings(collective(stated)) == []


def test_an_operand_without_sharding_is_whole_or_unknown() -> None:
    assert findings(collective('all_gather [{"x"}, {}] %arg0 out_sharding=<@mesh, [{}, {}]>', "")) == [
        ("shardy.no_sharding", 5)
    ]
    assert findings(collective('all_slice [{"x"}, {}] %arg0 out_sharding=<@mesh, [{"x"}, {}]>', "")) == []


def manual(stated: str, part: str = "tensor<4x32xf32>", body: str = "", result: str = "") -> str:
    whole = "tensor<16x32xf32>"
    return (
        MESH
        + f"func.func @f(%a: {whole}) -> {whole} {{\n"
        + f"  %0 = sdy.manual_computation(%a) {stated} (%b: {part}) {{\n{body}"
        + f"    sdy.return %b : {result or part}\n"
        + f"  }} : ({whole}) -> {whole}\n"
        + f"  return %0 : {whole}\n}}\n"
    )


IN_X = 'in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] '


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        (manual(IN_X + 'manual_axes={"w"}', "tensor<16x32xf32>"), "sharding.unknown_axis", 5),
        (manual(IN_X + 'manual_axes={"x"}', "tensor<8x32xf32>"), "shardy.manual", 5),
        (manual(IN_X.replace("}, {}", "}, {}, {}") + 'manual_axes={"x"}'), "sharding.rank", 5),
        (manual(IN_X.replace('[{"x"}', '[{"x":(1)2}') + 'manual_axes={"x"}'), "shardy.manual", 5),
        (manual(IN_X.replace('[{"x"}', '[{"y", "x"}') + 'manual_axes={"x"}'), "shardy.manual", 5),
        (manual(IN_X.replace("@mesh", "@turn", 1) + 'manual_axes={"x"}'), "shardy.mesh_mismatch", 5),
        (manual('in_shardings=[] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"}'), "shardy.attribute", 5),
        (
            manual(
                IN_X + 'manual_axes={"x"}',
                body='    %1 = sdy.sharding_constraint %b <@mesh, [{"x"}, {}]> : tensor<4x32xf32>\n',
            ),
            "shardy.manual",
            6,
        ),
    ],
)
def test_manual_computations(text: str, code: str, line: int) -> None:
    assert (code, line) in findings(text)


def test_a_manual_computation_that_is_right() -> None:
    inner = '    %1 = sdy.sharding_constraint %b <@mesh, [{}, {"y"}]> : tensor<4x32xf32>\n'
    assert findings(manual(IN_X + 'manual_axes={"x"}', body=inner)) == []


EXPECTED = re.compile(r"expected-error\s*(?:@([+-]\d+|above|below))?\s*\{\{")


@pytest.mark.parametrize("name", ["collective_verification", "tensor_sharding_verification"])
def test_shardys_own_ill_formed_cases(shared_data: Path, name: str) -> None:
    """Every case has a finding at its line (one of them a warning: versions of Shardy differ), and no other line has one."""
    text = (shared_data / f"inputs/hlo_public/mlir/shardy__test__{name}.mlir").read_text()
    wanted: set[int] = set()
    for number, line in enumerate(text.split("\n"), 1):
        match = EXPECTED.search(line)
        if match is not None:
            step = {"above": -1, "below": 1, None: 0}.get(match[1])
            wanted.add(number + (int(match[1]) if step is None else step))
    found = {int(item.path[1]) for item in import_mlir(text).diagnostics if item.code != "mlir.no_function"}
    assert found == wanted
    assert len(wanted) == {"collective_verification": 112, "tensor_sharding_verification": 53}[name]
