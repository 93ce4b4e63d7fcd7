import pytest

from bench.report import cells, document, line, number
from bench.rows import TABLE, AtMost, AtMostFloor, Measurement, met, missing, row
from bench.scenarios import SCENARIOS


@pytest.mark.parametrize(
    ("target", "value", "floors", "want"),
    [
        (AtMost(2), 2.0, (), True),
        (AtMost(2), 2.1, (), False),
        (AtMost(0), 0, (), True),
        (AtMost(2), None, (), False),
        (AtMostFloor(1.3), 1.3, (1.0,), True),
        (AtMostFloor(1.3), 1.31, (1.0,), False),
        (AtMostFloor(1.3), 2.6, (1.5, 2.5), True),
        (AtMostFloor(1.3), 1.0, (), None),
        (AtMostFloor(1.3), None, (1.0,), False),
        (None, 1.0, (), None),
    ],
)
def test_a_target_is_met_by_the_value_or_by_its_ratio_to_the_mean_floor(target, value, floors, want):
    assert met(target, Measurement("create", value, floors)) is want


def test_a_row_that_nothing_came_out_for_has_no_value_and_tells_why():
    found = missing(["idle-cpu", "idle-writes"], [Measurement("idle-cpu", 0.1)], "timeout after 3 s")
    assert found == [Measurement("idle-writes", None, note="timeout after 3 s")]


def test_a_measurement_without_floors_is_never_disturbed():
    assert not Measurement("create", 1.0).disturbed
    assert Measurement("create", 1.0, (1.0, 2.0)).disturbed


def test_every_row_is_measured_by_exactly_one_scenario():
    assert sorted(name for scenario in SCENARIOS for name in scenario.rows) == sorted(row.name for row in TABLE)


def test_a_line_of_the_table_holds_all_a_reader_needs():
    measured = Measurement("create", 2.0, (1.0, 3.0))
    assert cells(row("create"), measured, comparable=True)[1:] == (
        "2.00 s",
        "2.00 s",
        "1.00",
        "8.4 s = 5.4 x floor",
        "<= 1.3 x floor",
        "[green]yes",
    )


def test_small_sizes_are_not_judged():
    assert cells(row("create"), Measurement("create", 9.0, (1.0,)), comparable=False)[-1] == "-"
    assert document([Measurement("create", 9.0, (1.0,))], comparable=False)[0]["met"] is None


def test_instead_of_a_missing_value_the_note_is_shown():
    assert cells(row("restart"), Measurement("restart", None, note="timeout"), comparable=True)[1] == "timeout"


@pytest.mark.parametrize(
    ("value", "unit", "want"),
    [(None, "s", "-"), (1.234, "s", "1.23 s"), (1033, "writes", "1,033 writes"), (149.6, "MiB", "150 MiB")],
)
def test_a_number_has_as_many_digits_as_mean_something(value, unit, want):
    assert number(value, unit) == want


def test_the_progress_line_tells_both_floors_and_the_ratio():
    assert (
        line(row("create"), Measurement("create", 2.0, (1.0, 3.0)))
        == "create: 2.00 s; floor 1.00 s and 3.00 s, ratio 1.00"
    )
