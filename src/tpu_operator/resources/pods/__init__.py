"""Pods as a pipeline: one concern a file, one line a concern in the builder."""
