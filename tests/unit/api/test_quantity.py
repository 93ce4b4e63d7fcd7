"""Quantities as apimachinery's resource.Quantity reads, adds and prints them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpu_operator.api.quantity import ZERO, Format, InvalidQuantity, Quantity

SI, BINARY, EXPONENT = Format.DECIMAL_SI, Format.BINARY_SI, Format.DECIMAL_EXPONENT


@pytest.mark.parametrize(
    ("text", "amount", "notation", "printed"),
    [
        ("0", 0, SI, "0"),
        ("0Gi", 0, BINARY, "0"),
        (0, 0, SI, "0"),
        ("1", 1, SI, "1"),
        (4, 4, SI, "4"),
        (0.5, "0.5", SI, "500m"),
        ("+5", 5, SI, "5"),
        ("-1.5", "-1.5", SI, "-1500m"),
        (".5", "0.5", SI, "500m"),
        ("1.", 1, SI, "1"),
        ("1000m", 1, SI, "1"),
        ("1500m", "1.5", SI, "1500m"),
        ("100n", "0.0000001", SI, "100n"),
        ("1u", "0.000001", SI, "1u"),
        ("0.1n", "0.000000001", SI, "1n"),
        ("-0.1n", "-0.000000001", SI, "-1n"),
        ("1.23456789012", "1.234567891", SI, "1234567891n"),
        ("1k", 1000, SI, "1k"),
        ("1000k", 10**6, SI, "1M"),
        ("10k", 10**4, SI, "10k"),
        ("1.5G", 15 * 10**8, SI, "1500M"),
        ("2T", 2 * 10**12, SI, "2T"),
        ("3P", 3 * 10**15, SI, "3P"),
        ("12E", 12 * 10**18, SI, "12E"),
        ("1000E", 10**21, SI, "1000E"),
        ("1024", 1024, SI, "1024"),
        ("1Ki", 1024, BINARY, "1Ki"),
        ("1024Ki", 2**20, BINARY, "1Mi"),
        ("1000Ki", 1024000, BINARY, "1000Ki"),
        ("0.5Gi", 2**29, BINARY, "512Mi"),
        ("0.5Ki", 512, BINARY, "512"),
        ("1.5Gi", 3 * 2**29, BINARY, "1536Mi"),
        ("200Gi", 200 * 2**30, BINARY, "200Gi"),
        ("-2Gi", -(2**31), BINARY, "-2Gi"),
        ("7Ti", 7 * 2**40, BINARY, "7Ti"),
        ("7Pi", 7 * 2**50, BINARY, "7Pi"),
        ("7Ei", 7 * 2**60, BINARY, "7Ei"),
        ("9Ei", 2**63 - 1, BINARY, "9223372036854775807"),
        ("0.0001Ki", "0.1024", SI, "102400u"),
        ("1e3", 1000, EXPONENT, "1e3"),
        ("1E3", 1000, EXPONENT, "1e3"),
        ("12e6", 12 * 10**6, EXPONENT, "12e6"),
        ("5e-1", "0.5", EXPONENT, "500e-3"),
        ("1e2", 100, EXPONENT, "100"),
        ("1e21", 10**21, EXPONENT, "1e21"),
    ],
)
def test_reads_and_prints(text, amount, notation, printed):
    quantity = Quantity.parse(text)
    assert quantity.amount == Decimal(amount)
    assert quantity.format is notation
    assert str(quantity) == printed


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "1 Gi",
        "Gi",
        ".",
        "1.2.3",
        "1gi",
        "1GB",
        "1K",
        "--1",
        "1e",
        "e3",
        "1e1.5",
        "ten",
        "1i",
        True,
        "1e999999",
        "٣",
        "9" * 999,
        "1\n",
    ],
)
def test_refuses(text):
    with pytest.raises(InvalidQuantity):
        Quantity.parse(text)


def test_what_is_refused_is_named():
    with pytest.raises(ValueError, match="'ten' is no quantity"):
        Quantity.parse("ten")


@pytest.mark.parametrize(
    ("first", "second", "total"),
    [
        ("200Gi", "200Gi", "400Gi"),
        ("512Mi", "512Mi", "1Gi"),
        ("1Gi", "1M", "1074741824"),
        ("1M", "1Gi", "1074741824"),
        ("1Gi", "1024", "1048577Ki"),
        ("1024", "1Gi", "1073742848"),
        ("500m", "500m", "1"),
        ("0", "1Gi", "1Gi"),
        ("1Gi", "0", "1Gi"),
        ("1Gi", "1m", "1073741824001m"),
        ("1e3", "1k", "2e3"),
        ("1", "-1", "0"),
    ],
)
def test_sums_keep_the_notation_of_the_first(first, second, total):
    assert str(Quantity.parse(first) + Quantity.parse(second)) == total


@pytest.mark.parametrize(
    ("text", "factor", "product"), [("500m", 3, "1500m"), ("16Gi", 64, "1Ti"), ("4", 256, "1024"), ("1Gi", 0, "0")]
)
def test_multiplies(text, factor, product):
    assert str(Quantity.parse(text) * factor) == product


@pytest.mark.parametrize(
    ("text", "whole"), [("1", 1), ("1m", 1), ("1001m", 2), ("1Gi", 2**30), ("-1500m", -2), ("0", 0)]
)
def test_rounds_up_to_whole_numbers(text, whole):
    assert Quantity.parse(text).ceil_int() == whole


def test_zero_is_false():
    assert not ZERO
    assert not Quantity.parse("0Gi")
    assert Quantity.parse("1n")


@given(st.integers(-(10**15), 10**15), st.sampled_from(["n", "u", "m", "", "k", "M", "Ki", "Mi", "e3", "e-6"]))
def test_what_is_printed_reads_as_the_same_amount_and_prints_the_same(number, suffix):
    quantity = Quantity.parse(f"{number}{suffix}")
    again = Quantity.parse(str(quantity))
    assert again.amount == quantity.amount
    assert str(again) == str(quantity)
