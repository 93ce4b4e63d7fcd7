"""A Kubernetes operator that makes a multi-host TPU slice the unit of a Ray cluster."""

__version__ = "0.1.0"
