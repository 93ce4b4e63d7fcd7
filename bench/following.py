"""Following the pods of the bench's namespace by their metadata: all that the driver and its kubelet ask for."""

from collections.abc import AsyncIterator

import msgspec

from bench.api import METADATA_LIST, PODS, Api
from bench.errors import WatchEndedError
from bench.ledger import PartialList, PodEvent

WATCH_SECONDS = 3600

_decode_event = msgspec.json.Decoder(PodEvent).decode
_decode_list = msgspec.json.Decoder(PartialList).decode


async def follow_pods(api: Api) -> AsyncIterator[list[PodEvent]]:
    """Yield batches of events for ever, first those there are as ADDED.

    The API server drops a watcher that does not keep up; the watch then goes on where it was. Raises WatchEndedError if
    it cannot: events would be missing.
    """
    _, answer = await api.send("GET", PODS, accept=METADATA_LIST)
    listing = _decode_list(answer)
    yield [PodEvent("ADDED", item) for item in listing.items or ()]
    version = listing.metadata.resourceVersion
    while True:
        path = f"{PODS}?watch=1&resourceVersion={version}&timeoutSeconds={WATCH_SECONDS}"
        async for batch in api.lines(path):
            events = [_decode_event(line) for line in batch]
            if any(event.type == "ERROR" for event in events):
                raise WatchEndedError(f"the watch on pods cannot go on: {batch[-1][:200].decode(errors='replace')}")
            version = events[-1].object.metadata.resourceVersion
            yield events
