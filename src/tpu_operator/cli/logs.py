"""Logs: structlog for us, the standard library's for kopf and aiohttp, both through one format."""

from __future__ import annotations

import logging
import sys

import structlog

from tpu_operator.errors import InvalidInput

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure_logs(level: str, log_format: str) -> None:
    """Log to stderr from `level` on, for people (`console`) or machines (`json`)."""
    if level not in LEVELS:
        raise InvalidInput(f"log level {level!r}: write one of {', '.join(LEVELS)}")
    if log_format not in ("console", "json"):
        raise InvalidInput(f"log format {log_format!r}: write console or json")
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    renderer: structlog.typing.Processor
    if log_format == "json":
        shared.append(structlog.processors.format_exc_info)
        renderer = structlog.processors.JSONRenderer()
    else:
        renderer = structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(),
            # rich would show local variables: slow, and Secrets could be among them
            exception_formatter=structlog.dev.plain_traceback,
        )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer], foreign_pre_chain=shared
        )
    )
    logging.basicConfig(handlers=[handler], level=LEVELS[level], force=True)
    for noisy in ("kopf", "aiohttp", "asyncio"):
        logging.getLogger(noisy).setLevel(max(LEVELS[level], logging.WARNING))
