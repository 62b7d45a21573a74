"""Transforms of functions: vmap, Jacobians, calls of modules with other parameters."""
