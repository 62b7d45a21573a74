"""Collectives that have gradients, for a group of one: what a process gives is what it gets."""

from rushlight import distributed as dist
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute


def all_reduce(tensor, op=dist.ReduceOp.SUM, group=None):
    dist._world()
    return tensor.clone()


def all_gather(tensor, group=None):
    dist._world()
    return (tensor.clone(),)


def broadcast(tensor, src, group=None):
    dist._world()
    return tensor.clone()


def reduce(tensor, dst, op=dist.ReduceOp.SUM, group=None):
    dist._world()
    return tensor.clone()


def gather(tensor, dst=0, group=None):
    dist._world()
    return (tensor.clone(),)


def scatter(tensors, src=0, group=None):
    dist._world()
    return tensors[0].clone()


def reduce_scatter(output, input_list, op=dist.ReduceOp.SUM, group=None):
    dist._world()
    return input_list[0].clone()


def all_to_all(output_tensor_list, input_tensor_list, group=None):
    dist._world()
    return tuple(t.clone() for t in input_tensor_list)


__getattr__ = _unsupported_attribute(__name__)
