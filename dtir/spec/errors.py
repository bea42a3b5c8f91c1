"""What is wrong with a spec, as an exception that names the field."""

from __future__ import annotations


class SpecError(ValueError):
    """A spec that cannot be: the field, and what was found and wanted.

    Args:
        field: dotted path of the field, ``core.policy.kind`` say.
        message: one sentence.
        code: stable code of `dtir.spec.codes`.
    """

    def __init__(self, field: str, message: str, code: str = "spec.value") -> None:
        super().__init__(message)
        self.field = field
        self.code = code
