"""What can go wrong while a control plane is built, started or asked."""


class DevclusterError(Exception):
    """Root of the errors of this package; the message is fit for a person."""


class BuildError(DevclusterError):
    """A program could not be built, or no Go toolchain could be had."""


class StartError(DevclusterError):
    """A program ended, or was not ready in time; the message carries the end of its log."""


class PortTakenError(StartError):
    """Another process took the port between the moment we found it free and the moment the program bound it."""


class RequestError(DevclusterError):
    """The API server refused a request: `status` is the HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class CommandError(DevclusterError):
    """A kubectl command failed; the message is what it printed."""
