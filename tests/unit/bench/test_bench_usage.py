import os

from bench.usage import PAGE, TICKS, Process, Usage, parse_stat, tree, usage_of


def test_the_command_may_hold_spaces_and_parentheses():
    fields = ["S", "7", *["0"] * 9, str(3 * TICKS), str(TICKS), *["0"] * 8, str(2 * 1024 * 1024 // PAGE), "0"]
    assert parse_stat(f"42 (a) b (c)) {' '.join(fields)}") == Process(7, Usage(2.0, 4.0))


def test_a_tree_is_the_process_and_its_descendants():
    processes = {
        1: Process(0, Usage(100, 100)),
        2: Process(1, Usage(1, 0.5)),
        3: Process(2, Usage(2, 0.5)),
        4: Process(3, Usage(4, 0)),
        5: Process(1, Usage(50, 50)),
    }
    assert tree(processes, 2) == Usage(7, 1.0)


def test_a_process_that_is_gone_uses_nothing():
    assert tree({}, 2) == Usage(0, 0)


def test_our_own_process_uses_some_memory():
    assert usage_of(os.getpid()).memory > 1
