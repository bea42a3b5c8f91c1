"""The codes of reading MLIR text. What breaks a rule of Shardy has codes of its own: `dtir.importers.stablehlo.sdy_codes`."""

from __future__ import annotations

from dtir.importers.stablehlo.sdy_codes import SDY_CODES
from dtir.schema.catalogue import CodeEntry
from dtir.schema.diagnostics import Severity

_TEXT: tuple[CodeEntry, ...] = (
    CodeEntry(
        "mlir.syntax",
        "The text does not follow the grammar of MLIR at this place. Reading goes on at the next function, so that one run "
        "reports everything; no program is made of a part that was not understood in full.",
        "%0 = stablehlo.add(%a, %b : tensor<2xf32>",
        "%0 = stablehlo.add %a, %b : tensor<2xf32>",
        "look at the line and column of the message; a cut file ends inside a function",
    ),
    CodeEntry(
        "mlir.too_deep",
        "Regions or brackets nest deeper than anything that a producer writes.",
        "((((((((... ten thousand times",
        "a loop in a function",
        "check what wrote the file",
    ),
    CodeEntry(
        "mlir.omitted",
        "More problems were found than are listed.",
        "a file of noise",
        "the module as the compiler printed it",
        "repair the listed ones first",
    ),
    CodeEntry(
        "mlir.no_function",
        "The text (or one part of it) has no function with a body: there is nothing to make a program of.",
        'sdy.mesh @mesh = <["x"=2]>',
        "a module with func.func @main(...) {...}",
        "dump the module with its functions",
    ),
    CodeEntry(
        "mlir.outside_function",
        "An operation at the top of the module is neither a function nor a mesh. It is not part of the program.",
        "ml_program.global private @state : tensor<4xf32>",
        "the same state as an argument of the function",
        "check that the program does not depend on it",
        Severity.WARNING,
    ),
)

_NAMES: tuple[CodeEntry, ...] = (
    CodeEntry(
        "mlir.unknown_value",
        "An operation uses a value that nothing before it defines.",
        "%1 = stablehlo.negate %0 : tensor<2xf32>",
        "%0 = stablehlo.abs %a : tensor<2xf32>\n%1 = stablehlo.negate %0 : tensor<2xf32>",
        "dump the module again; text that was cut or edited loses definitions",
    ),
    CodeEntry(
        "mlir.duplicate_value",
        "A name is given to two values of one function.",
        "%0 = stablehlo.abs %a ...  %0 = stablehlo.negate %a ...",
        "%0 = stablehlo.abs %a ...  %1 = stablehlo.negate %a ...",
        "rename one of them",
    ),
    CodeEntry(
        "mlir.duplicate_symbol",
        "Two functions or two meshes of one module have the same name.",
        "func.func @f() {...}  func.func @f() {...}",
        "func.func @f() {...}  func.func @g() {...}",
        "rename one, or put a line // ----- between two programs in one file",
    ),
    CodeEntry(
        "mlir.unknown_function",
        "A call names a function that the module does not have.",
        "%0 = func.call @missing(%a) : (tensor<2xf32>) -> tensor<2xf32>",
        "the same with func.func private @missing(...) {...} in the module",
        "dump the whole module",
    ),
    CodeEntry(
        "mlir.function",
        "The head of a function cannot be read: its name, or an argument that is not %name: type.",
        "func.func @main(tensor<4xf32>) {",
        "func.func @main(%arg0: tensor<4xf32>) {",
        "write the arguments with names",
    ),
    CodeEntry(
        "mlir.recursion",
        "Functions call each other in a circle. A program that is laid out over ranks ends, and has no recursion.",
        "@f calls @g, @g calls @f",
        "a loop",
        "rewrite it with stablehlo.while",
    ),
    CodeEntry(
        "mlir.capture",
        "The function of a reduction, sort, map or scatter uses a value from outside of it.",
        "a reducer that adds %outer",
        "a reducer of its own two arguments",
        "hand the value in as an operand of another operation",
    ),
    CodeEntry(
        "mlir.blocks",
        "A region has several blocks that jump to each other. Only structured control flow is read: loops, branches, calls.",
        "cf.br ^bb1",
        "stablehlo.while, stablehlo.case, stablehlo.if",
        "lower it to structured control flow",
    ),
)

_OPERATIONS: tuple[CodeEntry, ...] = (
    CodeEntry(
        "mlir.unknown_op",
        "Nothing is known of an operation. It is kept, as an opaque local task with everything that its text says; what it "
        "sends between ranks, if anything, is not seen.",
        '"vendor.fused_layer"(%a) : (tensor<4xf32>) -> tensor<4xf32>',
        "the operations that it stands for",
        "dump the module before that operation is made",
        Severity.WARNING,
    ),
    CodeEntry(
        "mlir.operation",
        "An operation does not have the form that its name asks for.",
        "%0 = stablehlo.slice %a : (tensor<4xf32>) -> tensor<2xf32>",
        "%0 = stablehlo.slice %a [0:2] : (tensor<4xf32>) -> tensor<2xf32>",
        "compare it with what the compiler prints",
    ),
    CodeEntry(
        "mlir.missing_attribute",
        "An operation lacks an attribute or clause that it needs.",
        "%0 = stablehlo.transpose %a : (tensor<2x3xf32>) -> tensor<3x2xf32>",
        "%0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>",
        "add it",
    ),
    CodeEntry(
        "mlir.operand_count",
        "An operation, a call or a region takes another number of values than it is given.",
        "%0 = func.call @f(%a) ... where @f takes two arguments",
        "%0 = func.call @f(%a, %b) ...",
        "give it as many as it takes",
    ),
    CodeEntry(
        "mlir.operand_type",
        "A value has another type than where it is used: in a call, a loop, a branch.",
        "a loop whose body yields tensor<3xf32> for a state of tensor<4xf32>",
        "a body that yields tensor<4xf32>",
        "make the types equal",
    ),
    CodeEntry(
        "mlir.result_types",
        "The number of types behind an operation is not that of its results.",
        '%0:2 = "stablehlo.sort"(%a, %b) ... -> tensor<4xf32>',
        '%0:2 = "stablehlo.sort"(%a, %b) ... -> (tensor<4xf32>, tensor<4xi32>)',
        "state one type per result",
    ),
    CodeEntry(
        "mlir.type",
        "Text that should be a type is none.",
        "tensor<4xf33>",
        "tensor<4xf32>",
        "write it as MLIR does: tensor<4x8xf32>, i32, !stablehlo.token",
    ),
    CodeEntry(
        "mlir.literal",
        "The values of a constant cannot be read as values of its type.",
        "stablehlo.constant dense<[1.0, 2.0> : tensor<2xf32>",
        "stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>",
        "dump the module again",
    ),
    CodeEntry(
        "mlir.replica_groups",
        "The groups or pairs of a collective cannot be read, name an id twice, or speak of a mesh or axis that is not there.",
        "replica_groups = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>",
        "replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>",
        "every id stands in one group at most",
    ),
    CodeEntry(
        "mlir.group_mode",
        "use_global_device_ids says that groups count replicas and partitions together, which only collectives with a channel "
        "do (StableHLO specification, process groups).",
        "use_global_device_ids without channel_handle",
        "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids",
        "add a channel with a positive handle, or drop the flag",
    ),
    CodeEntry(
        "mlir.device_count_inferred",
        "The module does not say how many devices it is for. The number is inferred from the ids in its groups and shardings, "
        "and may be larger in truth.",
        "module @m { ... replica_groups = dense<[[0, 1]]> ... }",
        "module @m attributes {mhlo.num_partitions = 2 : i32} { ... }",
        "state mhlo.num_partitions and mhlo.num_replicas",
        Severity.WARNING,
    ),
    CodeEntry(
        "mlir.mesh",
        "A mesh cannot be read.",
        'sdy.mesh @mesh = <["x": 2]>',
        'sdy.mesh @mesh = <["x"=2]>',
        "axes with sizes, then device_ids where the order is another",
    ),
    CodeEntry(
        "mlir.sharding",
        "A sharding cannot be read.",
        'sdy.sharding = #sdy.sharding<@mesh, ["x"]>',
        'sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>',
        "a mesh, the axes of every dim in braces, then replicated and unreduced axes",
    ),
)

CODES: tuple[CodeEntry, ...] = (*_TEXT, *_NAMES, *_OPERATIONS, *SDY_CODES)
