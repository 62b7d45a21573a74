"""The sizes of ragged dimensions."""

from rushlight.nested._ragged_size import NestedIntNode as NestedIntNode
