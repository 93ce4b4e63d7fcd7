"""The command line. Imports of a command happen in it, so that `--help` and `version` answer at once."""

from __future__ import annotations

import os
import sys
from pathlib import Path  # noqa: TC003  (typer reads the annotations)
from typing import Annotated, Final

import typer

from tpu_operator import __version__
from tpu_operator.errors import TpuOperatorError

app = typer.Typer(
    help="A Kubernetes operator that makes a multi-host TPU slice the unit of a Ray cluster.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


# Their arguments are settings, parsed as Go programs do (KubeRay's Deployments write --switch=false), not by typer.
_SETTINGS_AS_FLAGS: Final = {
    "ignore_unknown_options": True,
    "allow_extra_args": True,
    "allow_interspersed_args": False,
    "help_option_names": [],
}


@app.command(context_settings=_SETTINGS_AS_FLAGS)
def run(context: typer.Context) -> None:
    """Serve RayClusters, with KUBECONFIG or inside a cluster, until SIGTERM or Ctrl-C. `run --help` lists the settings."""
    if _wants_help(context.args):
        _print_help("tpu-operator run [--SETTING=VALUE ...]", "Serve RayClusters until SIGTERM or Ctrl-C.")
        return
    try:
        from tpu_operator.cli.settings import resolve  # noqa: PLC0415

        resolved = resolve(context.args, os.environ)  # before what is slow to import: a mistake is told at once
        import structlog  # noqa: PLC0415
        import uvloop  # noqa: PLC0415

        from tpu_operator.cli.logs import configure_logs  # noqa: PLC0415
        from tpu_operator.controller.app import serve  # noqa: PLC0415

        configure_logs(resolved.config.log_level, resolved.config.log_format)
        if resolved.notes:
            structlog.get_logger().warning("settings without effect", settings=list(resolved.notes))
        uvloop.run(serve(resolved.config))
    except TpuOperatorError as error:
        _fail(error)


config = typer.Typer(help="Show and check the operator's settings.", no_args_is_help=True, add_completion=False)
app.add_typer(config, name="config")


@config.command(context_settings=_SETTINGS_AS_FLAGS)
def show(context: typer.Context) -> None:
    """Print every setting with its value and source, for the flags given here; `-o json|yaml` for machines."""
    if _wants_help(context.args):
        _print_help(
            "tpu-operator config show [-o text|json|yaml] [--SETTING=VALUE ...]",
            "Print every setting with its value and source, as `run` would have it with these flags.",
        )
        return
    from tpu_operator.cli.config import output_of, settings_text  # noqa: PLC0415
    from tpu_operator.cli.settings import resolve  # noqa: PLC0415

    try:
        output, flags = output_of(context.args)
        resolved = resolve(flags, os.environ)
        typer.echo(settings_text(resolved, output))
    except TpuOperatorError as error:
        _fail(error)
    for note in resolved.notes:
        typer.echo(f"without effect: {note}", err=True)


def _wants_help(arguments: list[str]) -> bool:
    return any(argument in ("--help", "-help", "-h") for argument in arguments)


def _print_help(usage: str, text: str) -> None:
    from tpu_operator.cli.config import flags_help  # noqa: PLC0415

    typer.echo("\n".join((f"Usage: {usage}", "", text, "", "Settings:", *flags_help())))


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
def topology(
    generation: Annotated[str, typer.Argument(help="v4, v5e, v5p, v6e, v7x, or an accelerator label.")],
    topology: Annotated[str, typer.Argument(help="Such as 4x4 or 2x2x4.")],
    chips: Annotated[
        int | None, typer.Option(help="Chips of each host, where there is a choice (2x4: 4 or 8).")
    ] = None,
    output: Annotated[str, typer.Option("--output", "-o", help="text or json.")] = "text",
) -> None:
    """Print hosts, ids, coordinates, environment and a worker group for a TPU slice."""
    from tpu_operator.cli.topology import topology_text  # noqa: PLC0415

    try:
        typer.echo(topology_text(generation, topology, chips, output))
    except TpuOperatorError as error:
        _fail(error)


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
