"""Where PyTorch has the search for a few eigenvalues."""

from . import lobpcg as lobpcg
