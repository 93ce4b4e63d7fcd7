"""Syntax of names and labels, as apimachinery's validation has it."""

from __future__ import annotations

import pytest

from tpu_operator.api import labels_syntax as syntax


@pytest.mark.parametrize("text", ["a", "a-b", "a1", "a" * 63])
def test_good_names_of_services(text):
    assert syntax.dns1035_label_problem(text) is None


@pytest.mark.parametrize("text", ["", "1a", "-a", "a-", "A", "a.b", "a_b", "a" * 64, "a\n", "ä"])
def test_bad_names_of_services(text):
    assert syntax.dns1035_label_problem(text)


@pytest.mark.parametrize("text", ["a", "1a", "0", "a-b", "a" * 63])
def test_good_dns_labels(text):
    assert syntax.dns1123_label_problem(text) is None


@pytest.mark.parametrize("text", ["", "-a", "a-", "A", "a.b", "a" * 64])
def test_bad_dns_labels(text):
    assert syntax.dns1123_label_problem(text)


@pytest.mark.parametrize("text", ["a", "a.b", "1.2-3", ".".join(["a" * 63] * 3)])
def test_good_subdomains(text):
    assert syntax.dns1123_subdomain_problem(text) is None


@pytest.mark.parametrize("text", ["", ".a", "a.", "a..b", "A", "a.-b", "a" * 254])
def test_bad_subdomains(text):
    assert syntax.dns1123_subdomain_problem(text)


@pytest.mark.parametrize("text", ["a", "A_b.c-d", "1", "ray.io/cluster", "a.b/C", f"{'a' * 253}/{'b' * 63}"])
def test_good_label_keys(text):
    assert syntax.label_key_problem(text) is None


@pytest.mark.parametrize(
    "text", ["", "/", "a/", "/a", "a/b/c", "-a", "a-", "a b", "A.io/b", "a" * 64, f"{'a' * 254}/b"]
)
def test_bad_label_keys(text):
    assert syntax.label_key_problem(text)


@pytest.mark.parametrize("text", ["", "a", "A_b.c-d", "1", "a" * 63])
def test_good_label_values(text):
    assert syntax.label_value_problem(text) is None


@pytest.mark.parametrize("text", ["-a", "a-", "a b", "a/b", "a" * 64, "a\n"])
def test_bad_label_values(text):
    assert syntax.label_value_problem(text)
