"""Reading: every print form gives the same module; attributes, tables and several modules in one text."""

from __future__ import annotations

import pytest

from dtir.importers.hlo.attributes import Frontend, IdLists, Names, Padding, Raw, Slices, Window
from dtir.importers.hlo.groups import MeshGroups
from dtir.importers.hlo.reader import read_text
from dtir.importers.hlo.source import origin
from dtir.importers.hlo.syntax import HloModule, Instruction

PRINTED = """HloModule m, entry_computation_layout={(f32[2,3]{1,0})->f32[3]{0}}, is_scheduled=true, num_partitions=4

%sum (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %add.1 = f32[] add(f32[] %x, f32[] %y)
}

ENTRY %main-0 (p.0: f32[2,3]) -> f32[3] {
  %p.0 = f32[2,3]{1,0} parameter(0), sharding={replicated}
  %zero = f32[] constant(0)
  ROOT %reduce.2 = f32[3]{0} reduce(f32[2,3]{1,0} %p.0, f32[] %zero), dimensions={0}, to_apply=%sum
}
"""
BARE = """// a comment
sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT add.1 = f32[] add(x, y)
}
main-0 { p.0 = f32[2,3] parameter(0), sharding={replicated} /* } */
  zero = f32[] constant(0) ROOT reduce.2 =
     f32[3] reduce(p.0, /*index=1*/zero),
       dimensions={0},
       to_apply=sum
}
"""


def one(text: str) -> HloModule:
    read = read_text(text)
    assert read.problems == ()
    assert len(read.modules) == 1
    return read.modules[0]


def root_of(line: str, before: str = "p = f32[4,4] parameter(0)") -> Instruction:
    return one(f"e {{\n  {before}\n  ROOT r = {line}\n}}").entry.root


def outline(module: HloModule) -> list[tuple[str, list[tuple[object, ...]]]]:
    return [
        (c.name, [(i.name, i.opcode, i.shape.text(), i.operands, i.number, i.literal) for i in c.instructions])
        for c in module.computations
    ]


def test_print_variants_are_one_module() -> None:
    printed, bare = one(PRINTED), one(BARE)
    assert outline(printed) == outline(bare)
    assert printed.entry.name == bare.entry.name == "main-0"
    assert (printed.name, bare.name) == ("m", None)
    assert (printed.is_scheduled, printed.num_partitions, printed.replica_count) == (True, 4, None)
    assert printed.entry.root.names("to_apply") == bare.entry.root.names("to_apply") == ("sum",)
    assert printed.entry.root.ints("dimensions") == bare.entry.root.ints("dimensions") == (0,)


@pytest.mark.parametrize("newline", ["\r\n", "\n\n\n", "\n\t"])
def test_white_space_does_not_matter(newline: str) -> None:
    assert outline(one(PRINTED.replace("\n", newline))) == outline(one(PRINTED))


def test_the_last_computation_is_the_entry_without_a_mark() -> None:
    assert one(PRINTED.replace("ENTRY ", "")).entry.name == "main-0"
    assert one("ENTRY a { p = f32[] parameter(0) }\nb { p = f32[] parameter(0) }").entry.name == "a"


def test_the_last_instruction_is_the_root_without_a_mark() -> None:
    assert one("a { p = f32[] parameter(0)  q = f32[] negate(p) }").entry.root.name == "q"


def test_execution_thread() -> None:
    module = one('a { p = f32[] parameter(0) }, execution_thread="sparsecore"')
    assert module.entry.execution_thread == "sparsecore"


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("f32[2,2] slice(p), slice={[0:2], [1:4:2]}", "slice", Slices((0, 1), (2, 4), (1, 2))),
        ("f32[7,4] pad(p, p), padding=1_-2_0x0_0", "padding", Padding((1, 0), (-2, 0), (0, 0))),
        ("f32[] pad(p, p), padding=", "padding", Padding((), (), ())),
        (
            "f32[4,4] reduce-window(p, p), window={size=2x1 stride=2x1 pad=0_1x0_0 rhs_reversal=1x0}",
            "window",
            Window((2, 1), (2, 1), ((0, 1), (0, 0)), (1, 1), (1, 1), (True, False)),
        ),
        ("f32[4,4] convolution(p, p), dim_labels=bf_io->bf", "dim_labels", "bf_io->bf"),
        ("f32[4,4] convolution(p, p), dim_labels=0b1f_01io->01bf", "dim_labels", "0b1f_01io->01bf"),
        ('f32[4,4] custom-call(p), custom_call_target="a\\"{b"', "custom_call_target", 'a"{b'),
        (
            'f32[4,4] custom-call(p), backend_config={"a":{"b":"}"},"n":1}',
            "backend_config",
            Raw('{"a":{"b":"}"},"n":1}'),
        ),
        (
            "f32[4,4] custom-call(p), api_version=API_VERSION_TYPED_FFI, backend_config={heads = 32 : i64}",
            "backend_config",
            Raw("{heads = 32 : i64}"),
        ),
        ("f32[4,4] custom-call(p), literal=s32[] 1", "literal", Raw("s32[] 1")),
        ("f32[4,4] custom-call(p), called_computations={}", "called_computations", Names(())),
        ('f32[4,4] custom-call(p), backend_config=\n    "x"', "backend_config", Raw('"x"')),
        (
            "f32[4,4] collective-permute(p, p, p, p), slice_sizes={{2,4},{1,1}}",
            "slice_sizes",
            IdLists(((2, 4), (1, 1))),
        ),
        ("f32[4,4] gather(p, p), slice_sizes={1,4}", "slice_sizes", (1, 4)),
        ("f32[4,4] batch-norm-training(p, p, p), epsilon=1e-05", "epsilon", 1e-05),
        ('f32[4,4] outfeed(p, p), outfeed_shape=(u32[2]{0}), outfeed_config="x"', "outfeed_shape", Raw("(u32[2]{0})")),
        (
            'f32[4,4] copy(p), frontend_attributes={a="x,y",b={mesh = #sdy.mesh<["dp"=2]>}, c.d=""}',
            "frontend_attributes",
            Frontend((("a", "x,y"), ("b", '{mesh = #sdy.mesh<["dp"=2]>}'), ("c.d", ""))),
        ),
        ('f32[4,4] copy(p), brand_new={[1], "}"}', "brand_new", Raw('{[1], "}"}')),
        (
            "f32[4,4] copy(p), statistics={visualizing_index=1,stat-1=33}",
            "statistics",
            Raw("{visualizing_index=1,stat-1=33}"),
        ),
        ("f32[4,4] copy(p), is_host_transfer=true", "is_host_transfer", True),
        ("f32[4,4] copy(p), control-predecessors={%a, b}", "control-predecessors", Names(("a", "b"))),
    ],
)
def test_attributes(line: str, key: str, value: object) -> None:
    assert root_of(line).attributes[key] == value


def test_mesh_groups_hold_commas_and_spaces() -> None:
    line = "f32[4,4] all-reduce(p), replica_groups=mesh['x'=2,'y, z'=2], device_ids=(0,2,1,3) {'y, z'}, use_global_device_ids=true"
    root = root_of(line)
    groups = root.attributes["replica_groups"]
    assert isinstance(groups, MeshGroups)
    assert groups.expand() == ((0, 2), (1, 3))
    assert root.flag("use_global_device_ids")


def test_attributes_in_any_order() -> None:
    root = root_of("f32[4,4] compare(p, p), type=TOTALORDER, sharding={replicated}, direction=GT")
    assert (root.text("direction"), root.text("type")) == ("GT", "TOTALORDER")


@pytest.mark.parametrize(
    ("shape", "literal"),
    [
        ("f32[]", "-inf"),
        ("f32[]", "nan"),
        ("f64[]", "nan(0x7ff8000000000)"),
        ("f32[]", "1e-05"),
        ("pred[]", "true"),
        ("c64[]", "(1, -2.5)"),
        ("c64[2]", "{(1, 2), (3, inf)}"),
        ("s32[3]", "{1, 2, 3}"),
        ("s32[2,2]", "{ { 1, 2 }, { 3, 4 } }"),
        ("s32[2,1,2]", "{ { /*i0=0*/ { 1, 2 } }, { /*i0=1*/ {3, 4} } }"),
        ("f32[1000,1000]", "{...}"),
        ("f32[0]", "{}"),
        ("s32[5]", "7"),
    ],
)
def test_constants(shape: str, literal: str) -> None:
    assert root_of(f"{shape} constant({literal})").literal == literal


def test_shapes_that_follow_are_filled_in() -> None:
    module = one("""e {
      a = f32[3] parameter(0)
      b = s32[2,3] parameter(1)
      t = tuple(a, b)
      g = get-tuple-element(t), index=1
      s = add(g, g)
      c = compare(s, b), direction=LT
      ROOT u = tuple(s, c)
    }""")
    assert [i.shape.text() for i in module.entry.instructions[2:]] == [
        "(f32[3], s32[2,3])",
        "s32[2,3]",
        "s32[2,3]",
        "pred[2,3]",
        "(s32[2,3], pred[2,3])",
    ]


def test_computations_inside_attributes() -> None:
    module = one("""e {
      p = f32[] parameter(0)
      ROOT c = f32[] call(p), to_apply={
        q = f32[] parameter(0)
        ROOT d = f32[] fusion(q), kind=kLoop, calls={ r = f32[] parameter(0) ROOT n = f32[] negate(r) }
      }, metadata={op_name="x"}
    }""")
    assert [c.name for c in module.computations] == ["d.calls", "c.to_apply", "e"]
    assert module.entry.name == "e"
    assert module.entry.root.names("to_apply") == ("c.to_apply",)


def test_canonical_print_holds_every_computation_in_place() -> None:
    module = one("""HloModule m, entry_computation_layout={(f32[8])->f32[8]}

ENTRY main
{
  tmp_0 = f32[8] parameter(0)
  tmp_1 = f32[8] all-reduce(f32[8] tmp_0), replica_groups={}, to_apply=
  {
    tmp_0 = f32[] parameter(0)
    tmp_1 = f32[] parameter(1)
    ROOT tmp_2 = f32[] add(f32[] tmp_0, f32[] tmp_1)
  }
  ROOT tmp_2 = f32[8] fusion(f32[8] tmp_1), kind=kLoop, calls=
  {
    tmp_0 = f32[8] parameter(0)
    ROOT tmp_1 = f32[8] negate(f32[8] tmp_0)
  }
}
""")
    assert [(c.name, c.root.opcode) for c in module.computations] == [
        ("tmp_1.to_apply", "add"),
        ("tmp_2.calls", "negate"),
        ("main", "fusion"),
    ]


def test_stack_frame_tables() -> None:
    module = one("""HloModule m

FileNames
1 "a \\"b\\".py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=26 end_line=26 column=14 end_column=14}

StackFrames
1 {file_location_id=1 parent_frame_id=1}


ENTRY e {
  p = f32[] parameter(0), metadata={op_name="jit(f)/mul" stack_frame_id=1}
  ROOT q = f32[] negate(p), metadata={op_type="n" source_file="c.py" source_line=7}
}""")
    first, last = module.entry.instructions
    assert (origin(first, module.tables).source, origin(first, module.tables).op_name) == ('a "b".py:26', "jit(f)/mul")
    assert origin(last, module.tables).source == "c.py:7"


def test_several_modules_by_separator_and_by_header() -> None:
    text = "// RUN: x\n" + "// -----\n".join([PRINTED, BARE, PRINTED.replace("HloModule m", "HloModule second")])
    read = read_text(text + PRINTED.replace("HloModule m", "HloModule third"))
    assert read.ok
    assert [module.name for module in read.modules] == ["m", None, "second", "third"]
    assert len({repr(outline(module)) for module in read.modules}) == 1


def test_equal_attribute_texts_are_one_object() -> None:
    module = one("""e {
      p = f32[4] parameter(0)
      a = f32[4] all-reduce(p), replica_groups={{0,1},{2,3}}
      ROOT b = f32[4] all-reduce(a), replica_groups={{0,1},{2,3}}
    }""")
    first, second = module.entry.instructions[1:]
    assert first.attributes["replica_groups"] is second.attributes["replica_groups"]
    assert first.shape is second.shape
