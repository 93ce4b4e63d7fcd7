from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpu_operator.tpu.shape import Severity, check_chip_request, check_slice

V6E, V5P = "tpu-v6e-slice", "tpu-v5p-slice"


@pytest.mark.parametrize(
    ("accelerator", "topology", "chips", "hosts"),
    [
        (V6E, "4x4", 4, 4),
        (V6E, "2x4", 8, 1),
        (V6E, "2x4", 8, None),
        (V6E, "2x4", 4, 2),
        (V6E, "2x2", None, None),
        ("tpu-v3-slice", "4x4", 4, 4),
    ],
)
def test_a_right_slice_has_no_findings(accelerator, topology, chips, hosts):
    assert check_slice(accelerator, topology, chips, hosts) == []


@pytest.mark.parametrize(
    ("asked", "expected", "got"),
    [
        (("tpu-v4-podslice", "2x2x1", 4, 2), "1", "2"),
        ((V6E, "4x4", 4, 1), "4", "1"),
        ((V6E, "4x4", 4, 0), "4", "0"),
        ((V6E, "4x4", 4, None), "4", "absent"),
        ((V6E, "4x4", None, 2), "4", "2"),
        ((V6E, "2x4", 4, 1), "2", "1"),
        ((V6E, "2x4", 8, 2), "1", "2"),
        ((V6E, "4x4", 8, 2), "4", "8"),
        ((V5P, "2x2x2", 8, 1), "4", "8"),
        ((V6E, "4x4", 0, 4), "1 or more", "0"),
        ((V6E, "4x4", -4, 4), "1 or more", "-4"),
        ((V6E, "", 4, 1), "2 or 3 positive whole numbers joined by 'x'", "nothing"),
        ((V6E, "2xa", 4, 1), "2 or 3 positive whole numbers joined by 'x'", "2xa"),
    ],
)
def test_an_error_tells_what_was_expected_and_got(asked, expected, got):
    (finding,) = check_slice(*asked)

    assert finding.severity is Severity.ERROR
    assert (finding.expected, finding.got) == (expected, got)
    assert finding.message
    assert finding.fix
    assert "\n" not in str(finding)


def test_a_wrong_number_of_hosts_names_topology_chips_and_the_right_number():
    (finding,) = check_slice(V6E, "4x4", 4, 2)

    assert str(finding) == (
        "v6e (tpu-v6e-slice) 4x4 with 4 chips per host has 4 hosts, numOfHosts is 2; set numOfHosts to 4"
    )


@pytest.mark.parametrize(
    ("accelerator", "topology", "words"),
    [
        ("tpu-v99-slice", "4x4", "accelerator 'tpu-v99-slice' is not in the table"),
        ("", "4x4", "cloud.google.com/gke-tpu-accelerator is missing"),
        ("tpu-v3-device", "4x4", "topology 4x4 of v3 (tpu-v3-device) is not in the table"),
    ],
)
def test_what_the_table_does_not_hold_is_only_warned_of(accelerator, topology, words):
    (finding,) = check_slice(accelerator, topology, 4, 4)

    assert finding.severity is Severity.WARNING
    assert words in finding.message


def test_all_findings_come_at_once():
    findings = check_slice("tpu-v99-slice", "2xa", 0, 1)

    assert [finding.severity for finding in findings] == ["warning", "error", "error"]
    assert [finding.severity for finding in check_slice("tpu-v99-slice", "4x4", 4, 3)] == ["warning", "error"]
    assert len(check_slice(V6E, "2x2x2", 0, 1)) == 2


@pytest.mark.parametrize(("request_", "limit"), [(4, 4), (None, 4), (None, None)])
def test_equal_request_and_limit_or_the_limit_alone_are_right(request_, limit):
    assert check_chip_request(request_, limit) == []


@pytest.mark.parametrize(
    ("request_", "limit", "got"), [(4, 8, "request 4, limit 8"), (4, None, "request 4, limit none")]
)
def test_a_request_that_differs_from_its_limit_is_an_error(request_, limit, got):
    (finding,) = check_chip_request(request_, limit)

    assert (finding.severity, finding.got) == (Severity.ERROR, got)


@given(
    accelerator=st.sampled_from([V6E, V5P, "tpu7x", "tpu-v3-slice", ""]) | st.text(max_size=9),
    topology=st.from_regex("[0-9]{1,2}(x[0-9]{1,2}){0,3}", fullmatch=True) | st.text(max_size=9),
    chips=st.none() | st.integers(),
    hosts=st.none() | st.integers(),
)
def test_checking_never_raises(accelerator, topology, chips, hosts):
    for finding in check_slice(accelerator, topology, chips, hosts):
        assert finding.message
        assert finding.fix
