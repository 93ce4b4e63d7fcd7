"""Syntax of names and labels. Each function returns what is wrong with a text, or None.

Source of the rules: k8s.io/apimachinery, package validation.
"""

from __future__ import annotations

import re
from typing import Final

LABEL_LENGTH: Final = 63
SUBDOMAIN_LENGTH: Final = 253

_DNS_1035_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_DNS_1123_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_DNS_1123_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")


def dns1035_label_problem(text: str) -> str | None:
    """A name that a Service can have."""
    return _problem(
        text,
        _DNS_1035_LABEL,
        LABEL_LENGTH,
        "only lower-case letters, digits and dashes are allowed, with a letter first and no dash last",
    )


def dns1123_label_problem(text: str) -> str | None:
    """A part of a DNS name, as for namespaces."""
    return _problem(
        text,
        _DNS_1123_LABEL,
        LABEL_LENGTH,
        "only lower-case letters, digits and dashes are allowed, with a letter or digit first and last",
    )


def dns1123_subdomain_problem(text: str) -> str | None:
    """A name that most objects can have, such as pods."""
    return _problem(
        text,
        _DNS_1123_SUBDOMAIN,
        SUBDOMAIN_LENGTH,
        "only lower-case letters, digits, dashes and dots are allowed, with a letter or digit first and last in each part",
    )


def label_key_problem(text: str) -> str | None:
    """Key of a label or annotation: a name, with or without a domain and a slash before it."""
    domain, slash, name = text.rpartition("/")
    if "/" in domain:
        return "only one slash is allowed in a key"
    if slash and (problem := dns1123_subdomain_problem(domain)):
        return f"before the slash: {problem}"
    return _problem(name, _QUALIFIED, LABEL_LENGTH, _NAME_RULE)


def label_value_problem(text: str) -> str | None:
    """Value of a label; it may be empty."""
    return _problem(text, _QUALIFIED, LABEL_LENGTH, _NAME_RULE) if text else None


_NAME_RULE: Final = (
    "only letters, digits, dashes, underscores and dots are allowed, with a letter or digit first and last"
)


def _problem(text: str, syntax: re.Pattern[str], longest: int, rule: str) -> str | None:
    if not text:
        return "it is empty"
    if len(text) > longest:
        return f"it is {len(text)} characters long, at most {longest} are allowed"
    return None if syntax.fullmatch(text) else rule
