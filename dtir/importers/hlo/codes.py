"""The codes of reading HLO text."""

from __future__ import annotations

from dtir.schema.catalogue import CodeEntry
from dtir.schema.diagnostics import Severity

_TEXT: tuple[CodeEntry, ...] = (
    CodeEntry(
        "hlo.syntax",
        "The text does not follow the grammar of HLO at this place. Reading goes on behind it, so that one run reports "
        "everything, but no program is made of a module that was not understood in full.",
        "%a = f32[2] add(%x %y)",
        "%a = f32[2] add(%x, %y)",
        "look at the line and column of the message; a cut file ends inside a computation",
    ),
    CodeEntry(
        "hlo.gave_up",
        "After very many faults the rest of the text was not read.",
        "a file that is not HLO but begins like it",
        "the module as the compiler printed it",
        "repair the faults above and read it again",
    ),
    CodeEntry(
        "hlo.empty",
        "There is a module, or a text that begins like one, but no computation in it.",
        "HloModule m",
        "HloModule m\nENTRY e { ROOT a = f32[] parameter(0) }",
        "dump the module with its computations",
    ),
    CodeEntry(
        "hlo.empty_computation",
        "A computation has no instruction, so it has no result either.",
        "f { }",
        "f { ROOT a = f32[] parameter(0) }",
        "dump the module again",
    ),
    CodeEntry(
        "hlo.several_modules",
        "The text holds more than one module (test files separate them with // -----). One program is one module.",
        "HloModule a ... // ----- HloModule b ...",
        "HloModule a ...",
        "cut the text at the module in question",
        Severity.WARNING,
    ),
    CodeEntry(
        "hlo.entry",
        "More than one computation is marked ENTRY; a module begins at one.",
        "ENTRY a {...} ENTRY b {...}",
        "ENTRY a {...} b {...}",
        "mark one computation",
    ),
    CodeEntry(
        "hlo.roots",
        "More than one instruction of a computation is marked ROOT; a computation has one result.",
        "f { ROOT a = ... ROOT b = ... }",
        "f { a = ... ROOT b = ... }",
        "mark one instruction",
    ),
    CodeEntry(
        "hlo.duplicate_computation",
        "Two computations have one name, so a call of it means two things.",
        "f {...} f {...}",
        "f {...} g {...}",
        "dump the module again; names are unique in it",
    ),
    CodeEntry(
        "hlo.duplicate_instruction",
        "Two instructions of a computation have one name.",
        "a = f32[] add(x, y)   a = f32[] add(x, z)",
        "a = f32[] add(x, y)   b = f32[] add(x, z)",
        "dump the module again; names are unique in a computation",
    ),
    CodeEntry(
        "hlo.duplicate_attribute",
        "An attribute is stated twice; which of the two holds is unknown.",
        "dimensions={0}, dimensions={1}",
        "dimensions={0}",
        "state it once",
    ),
    CodeEntry(
        "hlo.parameters",
        "The parameters of a computation are not numbered 0, 1, 2, ... each once.",
        "p = f32[] parameter(0)   q = f32[] parameter(2)",
        "p = f32[] parameter(0)   q = f32[] parameter(1)",
        "dump the module again",
    ),
)

_REFERENCES: tuple[CodeEntry, ...] = (
    CodeEntry(
        "hlo.unknown_computation",
        "An instruction names a computation that the module does not have.",
        "fusion(x), calls=missing",
        "fusion(x), calls=fused",
        "dump the whole module; passes that print one computation leave the others out",
    ),
    CodeEntry(
        "hlo.unknown_operand",
        "An operand is not defined before its use. Instructions are listed in an order in which they can run.",
        "a = f32[] add(b, b)   b = f32[] parameter(0)",
        "b = f32[] parameter(0)   a = f32[] add(b, b)",
        "dump the whole computation",
    ),
    CodeEntry(
        "hlo.unknown_opcode",
        "The opcode is not known here. The instruction is kept as a task that says so; what it computes is not known.",
        "a = f32[] frobnicate(b)",
        "a = f32[] add(b, b)",
        "nothing need be done; results about what depends on it are weaker",
        Severity.WARNING,
    ),
    CodeEntry(
        "hlo.recursion",
        "Computations call each other in a circle, which HLO forbids: nothing could say how often they run.",
        "f calls g, g calls f",
        "f calls g",
        "dump the module again",
    ),
    CodeEntry(
        "hlo.operand_count",
        "An instruction has more or fewer operands than its opcode, or the computation that it calls, takes.",
        "add(x)",
        "add(x, y)",
        "dump the module again",
    ),
    CodeEntry(
        "hlo.tuple_index",
        "get-tuple-element takes an element that the tuple does not have, or takes one of something that is no tuple.",
        "get-tuple-element((f32[], s32[]) t), index=2",
        "get-tuple-element((f32[], s32[]) t), index=1",
        "dump the module again",
    ),
    CodeEntry(
        "hlo.missing_attribute",
        "An instruction lacks an attribute without which it has no meaning.",
        "while(x), body=b",
        "while(x), condition=c, body=b",
        "print the module with its attributes (not in the short form)",
    ),
    CodeEntry(
        "hlo.attribute",
        "An attribute does not have the form of its kind, or states something that the shapes do not allow.",
        "all-gather(x), dimensions={5}   for x of rank 2",
        "all-gather(x), dimensions={1}",
        "look at the line and column of the message",
    ),
    CodeEntry(
        "hlo.async_pair",
        "The start, update and done of an asynchronous operation do not belong together.",
        "all-reduce-done of a value that no all-reduce-start gives",
        "s = all-reduce-start(x)   d = all-reduce-done(s)",
        "dump the whole computation",
    ),
)

_SHAPES: tuple[CodeEntry, ...] = (
    CodeEntry(
        "hlo.unknown_dtype",
        "The element type of a shape is none of HLO's.",
        "q17[4]",
        "f32[4]",
        "look at the line and column of the message",
    ),
    CodeEntry(
        "hlo.shape_missing",
        "The shape of an instruction is not stated and does not follow from its operands.",
        "a = parameter(0)",
        "a = f32[4] parameter(0)",
        "print the module with result shapes",
    ),
    CodeEntry(
        "hlo.shape_mismatch",
        "Two shapes that must agree do not: of an argument and its parameter, of a result and what is said to give it.",
        "call(x) with x f32[4] of a computation that takes f32[8]",
        "call(x) with x f32[8]",
        "dump the module again",
    ),
    CodeEntry(
        "hlo.literal",
        "A constant is not one, or has more or fewer values than its shape has elements.",
        "f32[3] constant({1, 2})",
        "f32[2] constant({1, 2})",
        "print the module with its constants",
    ),
)

_DEVICES: tuple[CodeEntry, ...] = (
    CodeEntry(
        "hlo.sharding",
        "A sharding annotation does not follow its grammar, or its tiles do not match its devices.",
        "sharding={devices=[2,2]<=[8]}",
        "sharding={devices=[2,4]<=[8]}",
        "look at the line and column of the message",
    ),
    CodeEntry(
        "hlo.replica_groups",
        "Replica groups do not describe disjoint groups of ids.",
        "replica_groups={{0,1},{1,2}}",
        "replica_groups={{0,1},{2,3}}",
        "every id occurs once",
    ),
    CodeEntry(
        "hlo.group_mode",
        "The attributes that say what the ids of the groups mean contradict each other.",
        "use_global_device_ids=true without channel_id",
        "channel_id=1, use_global_device_ids=true",
        "print the module with all attributes",
    ),
    CodeEntry(
        "hlo.pairs",
        "Source and target pairs are not pairs of ids.",
        "source_target_pairs={{0,1,2}}",
        "source_target_pairs={{0,1},{1,2}}",
        "list a source and a target in every pair",
    ),
    CodeEntry(
        "hlo.unknown_axis",
        "A group or sharding names an axis that its mesh does not have.",
        "mesh['x'=4] {'y'}",
        "mesh['x'=4] {'x'}",
        "use an axis of the mesh",
    ),
    CodeEntry(
        "hlo.sub_axis",
        "A sub-axis does not divide its axis, or overlaps another part of it.",
        "mesh['x'=4] {'x':(1)3}",
        "mesh['x'=4] {'x':(1)2}",
        "parts of an axis multiply to its size",
    ),
    CodeEntry(
        "hlo.axis_reuse",
        "An axis, or a part of it, is used twice.",
        "mesh['x'=4] {'x','x'}",
        "mesh['x'=4] {'x'}",
        "use every axis once",
    ),
    CodeEntry(
        "hlo.device_ids",
        "The device list of a mesh is not a permutation of its positions.",
        "mesh['x'=2], device_ids=(0,0)",
        "mesh['x'=2], device_ids=(1,0)",
        "list every device once",
    ),
    CodeEntry(
        "hlo.device_count",
        "An instruction names a device that the header says is not there.",
        "num_partitions=2 and replica_groups={{0,1,2,3}}",
        "num_partitions=4 and replica_groups={{0,1,2,3}}",
        "dump the module together with its header",
    ),
    CodeEntry(
        "hlo.too_many_ranks",
        "A group list or sharding would name more ranks than are expanded. The text is short; what it stands for is not.",
        "replica_groups=[1,4000000000]<=[4000000000]",
        "replica_groups=[1,4096]<=[4096]",
        "check the number of devices; no machine has so many",
    ),
)

_PROGRAMS: tuple[CodeEntry, ...] = (
    CodeEntry(
        "hlo.omitted",
        "A text with very many faults: those beyond the first thousand are counted, not listed.",
        "a file of noise between two instructions",
        "the module as the compiler printed it",
        "repair the faults that are listed and read it again",
    ),
    CodeEntry(
        "hlo.unbounded_dim",
        "A dim has neither a size nor a bound, so that nothing can be said about bytes or shards.",
        "f32[?,4]",
        "f32[<=8,4]",
        "give the dim a bound, or import a module that was compiled for fixed sizes",
    ),
    CodeEntry(
        "hlo.device_count_inferred",
        "The header does not say for how many devices the module is. The number is taken from the ids that occur in replica "
        "groups, source and target pairs and shardings: there are at least so many.",
        "HloModule m  with replica_groups={{0,1,2,3}}",
        "HloModule m, num_partitions=4  with replica_groups={{0,1,2,3}}",
        "state num_partitions= or replica_count= in the HloModule line",
        Severity.WARNING,
    ),
    CodeEntry(
        "hlo.unreachable",
        "Computations that the entry does not use, directly or through others, never run and are not part of the program.",
        "f {...} g {...} ENTRY e { ROOT c = call(), to_apply=f }",
        "f {...} ENTRY e { ROOT c = call(), to_apply=f }",
        "mark the computation in question ENTRY to see it",
        Severity.INFO,
    ),
    CodeEntry(
        "hlo.per_rank",
        "After the SPMD partitioner a shape is what one device holds, and the text does not say how the parts belong "
        "together. Such values vary along every axis; parameters of the entry keep their sharding.",
        "p = f32[2,8] parameter(0), sharding={devices=[4,1]<=[4]}  then  n = f32[2,8] negate(p)",
        "infer mode may derive that n is split as p is; that is a result, not what the text says",
        "verify in infer mode to see derived layouts",
        Severity.INFO,
    ),
    CodeEntry(
        "hlo.unpartitioned",
        "Before the SPMD partitioner shapes are global and shardings are wishes: the communication between two layouts is "
        "not in the text yet.",
        "the dump before spmd-partitioning",
        "the dump right after it",
        "import the dump made right after spmd-partitioning to see the communication",
        Severity.INFO,
    ),
)

CODES: tuple[CodeEntry, ...] = (*_TEXT, *_REFERENCES, *_SHAPES, *_DEVICES, *_PROGRAMS)
