"""What can go wrong with a row without the others being concerned."""


class BenchError(RuntimeError):
    """Base of the errors that end a scenario and not the run."""


class OperatorError(BenchError):
    """The operator ended by itself, or does nothing; the message holds the end of its output."""


class HelperError(BenchError):
    """A process of the bench itself did not start; the message holds the end of its output."""


class WatchEndedError(BenchError):
    """The API server ended the watch that everything is measured with."""


class RequestRefusedError(BenchError):
    """The API server answered with an error; `status` is its code."""

    def __init__(self, status: int, what: str) -> None:
        super().__init__(f"{status}: {what}")
        self.status = status
