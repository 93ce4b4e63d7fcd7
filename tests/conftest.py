"""What all tiers share: the fixtures of the local control plane."""

pytest_plugins = ["devcluster.pytest_plugin"]
