"""The codes of what breaks a rule of Shardy's dialect. Where a rule holds for every program its own code is used: `sharding.*`,
`collective.*`, `partial.*`."""

from __future__ import annotations

from dtir.schema.catalogue import CodeEntry

SDY_CODES: tuple[CodeEntry, ...] = (
    CodeEntry(
        "shardy.mesh",
        "A mesh is not one: an axis without devices, a name twice, or device ids that are not 0..n-1 in some order.",
        'sdy.mesh @mesh = <["x"=2, "x"=4]>',
        'sdy.mesh @mesh = <["x"=2, "y"=4]>',
        "sizes from 1 up, each name once, device_ids a permutation of all devices",
    ),
    CodeEntry(
        "shardy.unknown_mesh",
        "A sharding is of a mesh that the module does not define.",
        'sdy.sharding = #sdy.sharding<@other, [{"x"}]>',
        'sdy.mesh @other = <["x"=2]> and the same',
        "define the mesh with sdy.mesh, or name one that is there",
    ),
    CodeEntry(
        "shardy.maximal",
        "A mesh of one device and no axes puts the whole value there; there is nothing to shard over.",
        "#sdy.sharding<@maximal, [{}, {}]>",
        "#sdy.sharding<@maximal, []>",
        "leave dims and axes out",
    ),
    CodeEntry(
        "shardy.priority",
        "A dim that is not sharded and closed to further sharding has a priority, which orders nothing.",
        "[{}p1]",
        '[{"x"}p1] or [{?}p1]',
        "drop the priority or open the dim",
    ),
    CodeEntry(
        "shardy.sub_axis",
        "A part of an axis is none: it begins before 1, has size 1 or that of the axis, does not divide it, or follows another "
        "part with which it is one.",
        '"x":(2)3 of an axis of size 8',
        '"x":(2)4 of an axis of size 8',
        'write "axis":(pre)size with pre * size a divisor of the axis',
    ),
    CodeEntry(
        "shardy.axis_order",
        "Replicated, unreduced or reduced axes are a set, and are written in the order of the mesh.",
        'replicated={"y", "x"} on <["x"=2, "y"=2]>',
        'replicated={"x", "y"}',
        "put them in the order of the mesh",
    ),
    CodeEntry(
        "shardy.attribute",
        "A sharding attribute has the wrong form for where it stands: a function's argument has one sharding, an operation a "
        "list with one per result.",
        "%0 = stablehlo.add %a, %b {sdy.sharding = #sdy.sharding<@mesh, [{}]>} ...",
        "%0 = stablehlo.add %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} ...",
        "use #sdy.sharding on values, #sdy.sharding_per_value on operations",
    ),
    CodeEntry(
        "shardy.no_sharding",
        "The operand of a collective has no sharding, so that nothing says what is gathered, sliced or exchanged.",
        'sdy.all_gather [{"x"}] %arg0 ... where %arg0 has no sharding',
        'the same with {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>} on %arg0',
        "give the operand a sharding",
    ),
    CodeEntry(
        "shardy.mesh_mismatch",
        "Operand and result of a collective, or the shardings of one manual computation, are of different meshes.",
        "an all_gather from @mesh1 to @mesh2",
        "an all_gather within @mesh1",
        "use one mesh; a collective_permute may change the order of devices",
    ),
    CodeEntry(
        "shardy.manual",
        "A manual computation and what stands in it do not fit: an axis is bound twice, a manual axis is cut into parts or comes "
        "after another axis, or the body has another part of a value than its sharding leaves.",
        'in_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%a: tensor<16xf32>) of a tensor<16xf32>, "x"=2',
        "the same with (%a: tensor<8xf32>)",
        "inside, manual axes are gone: values are parts, and shardings name other axes",
    ),
)
