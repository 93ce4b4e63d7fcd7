from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tpu_operator.kube.lines import lines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LONG = b"x" * 3_000_000


async def chunks(*data: bytes) -> AsyncIterator[bytes]:
    for chunk in data:
        yield chunk


@pytest.mark.parametrize(
    ("data", "want"),
    [
        ([], []),
        ([b"one\ntwo\n"], [b"one", b"two"]),
        ([b"o", b"n", b"e\nt", b"wo\n"], [b"one", b"two"]),
        ([b"one", b"\n", b"two\n"], [b"one", b"two"]),
        ([b"\n\none\n\n", b"\n"], [b"one"]),
        ([b"one\ncut of"], [b"one"]),
        ([LONG[:1_000_000], LONG[1_000_000:], b"\nend\n"], [LONG, b"end"]),
    ],
)
async def test_chunks_become_lines_wherever_they_are_cut(data: list[bytes], want: list[bytes]) -> None:
    assert [line async for line in lines(chunks(*data))] == want
