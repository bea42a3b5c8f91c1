"""One program in two forms: do they compute the same, and where do they part?

>>> from dtir.check import check_programs
>>> check_programs  # doctest: +ELLIPSIS
<function check_programs at ...>
"""

from __future__ import annotations

from dtir.check.parting import Parting
from dtir.check.programs import Checked, Form, OutputCheck, check_programs

__all__ = ["Checked", "Form", "OutputCheck", "Parting", "check_programs"]
