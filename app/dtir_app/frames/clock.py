"""Times as text, and ticks of a time axis.

>>> seconds_text(0.00123), seconds_text(2.5e-6), seconds_text(0)
('1.23 ms', '2.5 µs', '0 s')
"""

from __future__ import annotations

import math

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def seconds_text(seconds: float | None) -> str:
    """Seconds in a unit that needs no zeros, three digits; a dash where there is no number."""
    if seconds is None or math.isnan(seconds):
        return "–"
    if seconds == 0:
        return "0 s"
    if abs(seconds) >= 120:
        return f"{seconds / 60:,.1f} min"
    for size, unit in _UNITS:
        if abs(seconds) >= size * 0.9995:
            return f"{seconds / size:.3g} {unit}" if abs(seconds) < size * 999.5 else f"{seconds / size:,.0f} {unit}"
    return f"{seconds / 1e-9:.2g} ns"


def ratio_text(ratio: float) -> str:
    """``×1.8`` or ``÷3.2``; a dash where there is no number.

    >>> ratio_text(2), ratio_text(0.25), ratio_text(1)
    ('×2', '÷4', '×1')
    """
    if not math.isfinite(ratio) or ratio <= 0:
        return "–"
    number = ratio if ratio >= 1 else 1 / ratio
    digits = f"{number:.3g}" if number < 1000 else f"{number:,.0f}"
    return f"{'×' if ratio >= 1 else '÷'}{digits}"


def ticks(first_s: float, last_s: float, count: int) -> list[tuple[float, str]]:
    """About so many round moments of a window, with their texts in one unit."""
    span = last_s - first_s
    if not (span > 0 and math.isfinite(span)) or count < 1:
        return []
    raw = span / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * 0.999999)
    largest = max(abs(first_s), abs(last_s))
    size, unit = next(((size, unit) for size, unit in _UNITS if largest >= size), _UNITS[-1])
    digits = max(0, -math.floor(math.log10(step / size) + 1e-9))
    begin = math.ceil(first_s / step - 1e-9)
    found: list[tuple[float, str]] = []
    for number in range(begin, begin + count * 3 + 2):
        moment = number * step
        if moment > last_s + step * 1e-9:
            break
        found.append((moment, f"{moment / size:,.{digits}f} {unit}"))
    return found
