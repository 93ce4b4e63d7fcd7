"""What objects look like: builders from a cluster to manifests, one file a kind."""
