"""Shapes as tensors, for models that are written with an export in mind."""

import rushlight as rl


def shape_as_tensor(x):
    """The sizes of x as an int64 tensor."""
    return rl.tensor(x.shape, dtype=rl.int64)


def reshape_from_tensor_shape(x, shape):
    """x with the sizes that a tensor holds."""
    return x.reshape(shape.tolist())
