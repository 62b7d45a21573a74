"""Ops composed in Python, one file per family. See rushlight/_compose.py."""
