"""Kubernetes quantities, exact: `500m`, `16Gi`, `1e3`.

Source of the rules: resource.Quantity of k8s.io/apimachinery (what it accepts, how it rounds, how it prints).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_UP, Context, Decimal
from enum import StrEnum
from typing import Final, TypeAlias

from typing_extensions import override

_DIGITS: Final = 400
_EXACT: Final = Context(prec=_DIGITS)
_NANO: Final = Decimal("1e-9")
_MAX_BINARY: Final = Decimal(2**63 - 1)
_MAX_EXPONENT: Final = 100
_MAX_LENGTH: Final = 200
_KIBI: Final = 1024

_SYNTAX: Final = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?", re.ASCII)
_DECIMAL_SUFFIXES: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIXES: Final = {"": 0, "Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_BY_EXPONENT: Final = {exponent: suffix for suffix, exponent in _DECIMAL_SUFFIXES.items()}
_BINARY_BY_EXPONENT: Final = {exponent: suffix for suffix, exponent in _BINARY_SUFFIXES.items()}

QuantityLike: TypeAlias = str | int | float


class InvalidQuantity(ValueError):
    """Not a quantity of Kubernetes."""


class Format(StrEnum):
    """How a quantity is printed: by powers of 1000 (`k`), of 1024 (`Ki`), or with an exponent (`e3`)."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


@dataclass(frozen=True, slots=True)
class Quantity:
    """An exact amount and the notation it was given in, which sums keep."""

    amount: Decimal
    format: Format = Format.DECIMAL_SI

    @classmethod
    def parse(cls, value: QuantityLike) -> Quantity:
        """Read a quantity as it stands in JSON or YAML.

        Amounts finer than nano are rounded away from zero, binary ones end at 2^63-1. Raises InvalidQuantity.
        """
        text = str(value)
        found = None if isinstance(value, bool) or len(text) > _MAX_LENGTH else _SYNTAX.fullmatch(text)
        if found is None:
            raise InvalidQuantity(f"{text[:_MAX_LENGTH]!r} is no quantity: expected a number like 2, 500m or 16Gi")
        number, suffix = Decimal(found[1]), found[2] or ""
        return _bounded(number, suffix)

    def __add__(self, other: Quantity) -> Quantity:
        """The sum, in the notation of the first operand unless that is zero."""
        notation = self.format if self.amount else other.format
        return Quantity(_EXACT.add(self.amount, other.amount), notation)

    def __mul__(self, factor: int) -> Quantity:
        """So many times this amount."""
        return Quantity(_EXACT.multiply(self.amount, Decimal(factor)), self.format)

    def __bool__(self) -> bool:
        """Whether it is not zero."""
        return bool(self.amount)

    def ceil_int(self) -> int:
        """The amount rounded up to a whole number, as Go's Value() does (away from zero)."""
        return int(self.amount.to_integral_value(ROUND_UP, _EXACT))

    @override
    def __str__(self) -> str:
        """Canonical notation: no fraction, the greatest suffix that keeps it exact."""
        if not self.amount:
            return "0"
        whole = self.amount == self.amount.to_integral_value(ROUND_CEILING, _EXACT)
        if self.format is Format.BINARY_SI and whole and abs(self.amount) >= _KIBI:
            return _binary(int(self.amount))
        return _decimal(self.amount, exponent=self.format is Format.DECIMAL_EXPONENT)


ZERO: Final = Quantity(Decimal(0))


def _bounded(number: Decimal, suffix: str) -> Quantity:
    if suffix in _DECIMAL_SUFFIXES:
        return Quantity(_at_least_nano(number.scaleb(_DECIMAL_SUFFIXES[suffix], _EXACT)))
    if suffix in _BINARY_SUFFIXES:
        amount = _at_least_nano(_EXACT.multiply(number, Decimal(2 ** _BINARY_SUFFIXES[suffix])))
        small = 0 < abs(amount) < 1
        bounded = max(-_MAX_BINARY, min(_MAX_BINARY, amount))
        return Quantity(bounded, Format.DECIMAL_SI if small else Format.BINARY_SI)
    exponent = int(suffix[1:])
    if abs(exponent) > _MAX_EXPONENT:
        raise InvalidQuantity(f"the exponent {exponent} is out of range: expected -{_MAX_EXPONENT} to {_MAX_EXPONENT}")
    return Quantity(_at_least_nano(number.scaleb(exponent, _EXACT)), Format.DECIMAL_EXPONENT)


def _at_least_nano(amount: Decimal) -> Decimal:
    exponent = amount.as_tuple().exponent
    fine = isinstance(exponent, int) and exponent < _NANO.as_tuple().exponent  # type: ignore[operator]
    return amount.quantize(_NANO, ROUND_UP, _EXACT) if fine else amount


def _binary(number: int) -> str:
    exponent = 0
    while number % _KIBI == 0 and exponent < max(_BINARY_BY_EXPONENT):
        number, exponent = number // _KIBI, exponent + 10
    return f"{number}{_BINARY_BY_EXPONENT[exponent]}"


def _decimal(amount: Decimal, *, exponent: bool) -> str:
    sign, digits, power = amount.normalize(_EXACT).as_tuple()
    assert isinstance(power, int)
    number, shift = int("".join(map(str, digits))), power % 3
    number, power = number * 10**shift, power - shift
    number, power = _within_suffixes(number, power, exponent=exponent)
    suffix = (f"e{power}" if power else "") if exponent else _DECIMAL_BY_EXPONENT[power]
    return f"{'-' if sign else ''}{number}{suffix}"


def _within_suffixes(number: int, power: int, *, exponent: bool) -> tuple[int, int]:
    """Beyond the greatest suffix the number gets longer."""
    greatest = max(_DECIMAL_BY_EXPONENT)
    return (number, power) if exponent or power <= greatest else (number * 10 ** (power - greatest), greatest)
