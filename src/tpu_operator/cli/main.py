"""The command line. Imports of a command happen in it, so that `--help` and `version` answer at once."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003  (typer reads the annotations)
from typing import Annotated

import typer

from tpu_operator import __version__
from tpu_operator.errors import TpuOperatorError

app = typer.Typer(
    help="A Kubernetes operator that makes a multi-host TPU slice the unit of a Ray cluster.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command()
def run(
    namespace: Annotated[
        list[str] | None, typer.Option("--namespace", "-n", help="Serve only this one; repeatable.")
    ] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None,
    log_format: Annotated[str | None, typer.Option(help="console or json.")] = None,
) -> None:
    """Serve RayClusters, with KUBECONFIG or inside a cluster, until SIGTERM or Ctrl-C."""
    import uvloop  # noqa: PLC0415

    from tpu_operator.cli.logs import configure_logs  # noqa: PLC0415
    from tpu_operator.cli.settings import read_config  # noqa: PLC0415
    from tpu_operator.controller.app import serve  # noqa: PLC0415

    try:
        config = read_config(
            namespaces=tuple(namespace) if namespace else None, log_level=log_level, log_format=log_format
        )
        configure_logs(config.log_level, config.log_format)
        uvloop.run(serve(config))
    except TpuOperatorError as error:
        _fail(error)


@app.command()
def plan(
    file: Annotated[
        Path, typer.Option("--file", "-f", help="Manifest with one or more RayClusters; - for standard input.")
    ],
    observed: Annotated[
        Path | None, typer.Option(help="Folder of YAML or JSON files with the pods and services that are there.")
    ] = None,
    server: Annotated[
        bool, typer.Option("--server", help="Look at the cluster that KUBECONFIG names, without acting on it.")
    ] = False,
    output: Annotated[str, typer.Option("--output", "-o", help="text or json.")] = "text",
) -> None:
    """Print what the operator would do now for the RayClusters in a manifest, and why."""
    from tpu_operator.cli.plan import print_plans  # noqa: PLC0415

    try:
        blocked = print_plans(file, observed, server=server, output=output)
    except TpuOperatorError as error:
        _fail(error)
    raise typer.Exit(1 if blocked else 0)


@app.command()
def crd() -> None:
    """Print the CustomResourceDefinition of RayCluster (`| kubectl apply --server-side -f -`)."""
    from tpu_operator.cli.crd import crd_text  # noqa: PLC0415

    sys.stdout.write(crd_text())


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


def _fail(error: TpuOperatorError) -> None:
    typer.echo(f"error: {error}", err=True)
    raise typer.Exit(2) from error
