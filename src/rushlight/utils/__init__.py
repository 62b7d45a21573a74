"""Helpers around tensors: data loading, checkpoints, hooks."""
