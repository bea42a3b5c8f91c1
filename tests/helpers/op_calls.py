"""A sample call of every core operator: what the tests of labels, classes, scales and arithmetic run on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dtir.ops import OpCall, OpDef, require_op

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Sample:
    """A call and how to draw its operands.

    Args:
        name: operator.
        call: shapes and parameters.
        kinds: per operand ``real``, ``positive``, ``unit`` (between -1 and 1), ``index`` or ``bool``; real where not given.
    """

    name: str
    call: OpCall
    kinds: tuple[str, ...] = ()

    @property
    def operator(self) -> OpDef:
        return require_op(self.name)

    def operands(self, random: np.random.Generator) -> list[np.ndarray]:
        kinds = self.kinds or ("real",) * len(self.call.operands)
        return [_draw(kind, shape, random) for kind, shape in zip(kinds, self.call.operands, strict=True)]


def _draw(kind: str, shape: Any, random: np.random.Generator) -> np.ndarray:
    draws: dict[str, Callable[[], np.ndarray]] = {
        "real": lambda: random.normal(size=shape),
        "positive": lambda: random.uniform(0.2, 2.0, size=shape),
        "unit": lambda: random.uniform(-0.9, 0.9, size=shape),
        "index": lambda: random.integers(0, 4, size=shape).astype(float),
        "bool": lambda: random.integers(0, 2, size=shape).astype(float),
    }
    return draws[kind]()


def _call(
    operands: tuple[Shape, ...], results: tuple[Shape, ...], attributes: Mapping[str, Any] | None = None
) -> OpCall:
    return OpCall(operands, results, dict(attributes or {}))


@dataclass
class _Table:
    samples: list[Sample] = field(default_factory=list)

    def add(self, name: str, operands: Any, results: Any, kinds: tuple[str, ...] = (), **attributes: Any) -> None:
        self.samples.append(Sample(name, _call(tuple(operands), tuple(results), attributes), kinds))


def _samples() -> list[Sample]:
    table = _Table()
    x = (4, 6)
    for name in (
        "identity", "cast", "stop_gradient", "neg", "square", "relu", "abs", "sign", "exp", "exp2", "expm1", "tanh", "sigmoid",
        "softplus", "silu", "gelu", "gelu_tanh", "erf", "sin", "cos", "tan", "floor", "ceil", "round", "cbrt", "isfinite",
    ):  # fmt: skip
        table.add(name, [x], [x])
    for name in ("sqrt", "rsqrt", "log", "log2", "log1p", "reciprocal"):
        table.add(name, [x], [x], ("positive",))
    table.add("logical_not", [x], [x], ("bool",))
    for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
        table.add(name, [x, (6,)], [x], ("index", "index"))
    for name in ("atan2", "remainder"):
        table.add(name, [x, (6,)], [x])
    for name in ("logical_and", "logical_or", "logical_xor"):
        table.add(name, [x, x], [x], ("bool", "bool"))
    table.add("pow", [x, x], [x], ("positive", "real"))
    for name in ("add", "sub", "mul", "maximum", "minimum"):
        table.add(name, [x, (6,), (4, 1)], [x])
    table.add("div", [x, (6,)], [x], ("real", "positive"))
    table.add("scale", [x], [x], c="3/4")
    table.add("shift", [x], [x], c=2)
    table.add("power", [x], [x], ("positive",), exponent=3)
    table.add("leaky_relu", [x], [x], slope="1/8")
    table.add("clip", [x], [x], low="-1/2", high="1/2")
    table.add("clamp", [x, x, x], [x])
    table.add("select", [x, x, x], [x], ("bool", "real", "real"))
    table.add("dropout", [x], [x])

    table.add("einsum", [(4, 6), (6, 3)], [(4, 3)], spec="bi,io->bo")
    table.add("matmul", [(2, 4, 6), (2, 6, 3)], [(2, 4, 3)])
    for name in ("sum", "max", "min", "mean", "amax", "sum_squares", "norm", "var", "std", "logsumexp", "prod"):
        table.add(name, [x], [(4,)], dims=[1])
    for name in ("any", "all"):
        table.add(name, [x], [(4,)], ("bool",), dims=[1])
    for name in ("argmax", "argmin"):
        table.add(name, [x], [(4,)], dims=[1])
    for name in ("softmax", "log_softmax", "cumsum", "sort", "reverse", "roll"):
        table.add(name, [x], [x], dims=[1])
    table.add("layernorm", [x, (6,), (6,)], [x])
    table.add("rmsnorm", [x, (6,)], [x])
    table.add("cross_entropy", [x, (4,)], [(4,)], ("real", "index"))
    table.add("attention", [(2, 4, 6), (2, 8, 6), (2, 8, 3)], [(2, 4, 3)])

    table.add("reshape", [(4, 6)], [(4, 2, 3)])
    table.add("transpose", [(4, 6, 2)], [(2, 4, 6)], perm=[2, 0, 1])
    table.add("broadcast", [(6,)], [(4, 6)], dims=[1])
    table.add("slice", [x], [(4, 3)], dim=1, start=1, stop=4)
    table.add("pad", [x], [(4, 9)], low=[0, 1], high=[0, 2])
    table.add("pad_value", [x], [(4, 9)], low=[0, 1], high=[0, 2], value="3/2")
    table.add("concat", [x, (4, 2)], [(4, 8)], dim=1)
    table.add("split", [x], [(4, 2), (4, 4)], dim=1)
    table.add("gather", [(6, 4), (4, 3)], [(4, 3, 4)], ("real", "index"), dim=0)
    table.add("embedding", [(6, 4), (4,)], [(4, 4)], ("real", "index"))
    table.add("take_along", [(4, 6), (4, 3)], [(4, 3)], ("real", "index"), dim=1)
    table.add("scatter_add", [(4, 6), (4,)], [(5, 6)], ("real", "index"))
    table.add("one_hot", [(4,)], [(4, 5)], ("index",))
    table.add("rope", [(2, 4, 6), (4,)], [(2, 4, 6)], ("real", "index"))

    table.add("positions", [], [(4, 6)], dim=1)
    table.add("iota", [], [(4, 6)], dim=1)
    table.add("rand", [], [(4, 6)])
    table.add("constant", [], [(4, 6)], value="5/2")
    table.add("shard", [x], [x], axis="tp", dim=0)
    table.add("mask", [x], [x], axis="tp")
    table.add("moe_expert", [(4, 6), (2, 6, 3)], [(4, 3)], route=[0, 1, 1, 0])
    table.add("stencil", [x], [x], radius=1)
    return table.samples


SAMPLES: tuple[Sample, ...] = tuple(_samples())
"""One for every core operator, in the order of the kinds."""
