import pytest

from bench.stats import disturbed, median, percentile


@pytest.mark.parametrize(
    ("values", "share", "want"),
    [
        ([3.0], 0.5, 3.0),
        ([3.0, 1.0, 2.0], 0, 1.0),
        ([3.0, 1.0, 2.0], 0.5, 2.0),
        ([3.0, 1.0, 2.0], 1, 3.0),
        (list(range(1, 101)), 0.95, 95),
        (list(range(1, 101)), 0.951, 96),
        ([1, 2, 3, 4], 0.5, 2),
    ],
)
def test_a_percentile_is_one_of_the_values(values, share, want):
    assert percentile(values, share) == want


@pytest.mark.parametrize(("values", "share"), [([], 0.5), ([1.0], 1.1), ([1.0], -0.1)])
def test_a_percentile_of_nothing_or_outside_of_all_is_an_error(values, share):
    with pytest.raises(ValueError):
        percentile(values, share)


def test_the_median_of_an_even_number_is_between_the_two_in_the_middle():
    assert median([4.0, 1.0, 3.0, 2.0]) == 2.5


@pytest.mark.parametrize(("floors", "want"), [([1.0, 1.2], False), ([1.2, 1.0], False), ([1.0, 1.4], True)])
def test_floors_that_differ_much_tell_of_a_disturbed_machine(floors, want):
    assert disturbed(floors) is want
