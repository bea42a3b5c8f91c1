"""Which function translates which operation."""

from __future__ import annotations

from dtir.importers.hlo.opcodes import BINARY, UNARY
from dtir.importers.stablehlo import (
    ops_communication,
    ops_control,
    ops_mpmd,
    ops_sdy,
    ops_structure,
    ops_tensor,
    ops_tt,
    ops_window,
)
from dtir.importers.stablehlo.builder import Builder
from dtir.importers.stablehlo.translate import Handler, Translator
from dtir.importers.stablehlo.views import View

_HLO = frozenset({"stablehlo", "mhlo", "chlo", "vhlo"})
_SPELLED = {
    "round_nearest_afz": "round-nearest-afz",
    "round_nearest_even": "round-nearest-even",
    "count_leading_zeros": "count-leading-zeros",
    "popcnt": "popcnt",
}
_HANDLERS: dict[str, Handler] = {
    **ops_tensor.HANDLERS,
    **ops_window.HANDLERS,
    **ops_structure.HANDLERS,
    **ops_control.HANDLERS,
    **ops_communication.HANDLERS,
    **ops_sdy.HANDLERS,
    **ops_mpmd.HANDLERS,
    **ops_tt.HANDLERS,
}
_PLAIN = frozenset({*UNARY, *BINARY, "select", "clamp", "complex", "real", "imag", "is-finite", "convert"}) - {
    "domain",
    "copy",
    "opt-barrier",
    "optimization-barrier",
    "reduce-precision",
    "stochastic-convert",
    "add-dependency",
}


def handler(name: str) -> Handler:
    """The function for an operation; of an unknown one the one that keeps it as it is."""
    found = _HANDLERS.get(name)
    if found is None:
        found = _HANDLERS[name] = _find(name)
    return found


def _find(name: str) -> Handler:
    dialect, _, rest = name.partition(".")
    if dialect in _HLO:
        shared = _HANDLERS.get(f"stablehlo.{rest}")
        if shared is not None:
            return shared
        opcode = _SPELLED.get(rest, rest.replace("_", "-"))
        if opcode in _PLAIN:
            return _element_wise(opcode)
    return Translator.unknown


def _element_wise(opcode: str) -> Handler:
    def translate(translator: Translator, builder: Builder, view: View) -> None:
        translator.emit(builder, view, opcode)

    return translate
