"""A stream of chunks cut into lines of any length (aiohttp's own `readline` refuses long ones)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


async def lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the non-empty lines without their newline; an unfinished last line is dropped, its stream was cut."""
    begun: list[bytes] = []
    async for chunk in chunks:
        head, *rest = chunk.split(b"\n")
        begun.append(head)
        if not rest:
            continue
        *whole, tail = rest
        first = b"".join(begun)
        if first:
            yield first
        for line in whole:
            if line:
                yield line
        begun = [tail] if tail else []
