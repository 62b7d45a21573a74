"""Utilities of models: clipping, vectors of parameters, packing, parametrisations, pruning."""

from . import rnn
