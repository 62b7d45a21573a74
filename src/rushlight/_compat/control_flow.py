"""torch.cond and torch.while_loop, which are operators for PyTorch's compiler: here Python's own statements."""


def cond(pred, true_fn, false_fn, operands=()):
    """true_fn(*operands) or false_fn(*operands), as pred says.

    Args:
        pred (bool or Tensor): of one element.
        true_fn (callable): runs where it is true.
        false_fn (callable): runs where it is false.
        operands (tuple): of tensors. Default: ()

    Example:
        >>> torch.cond(torch.tensor(False), torch.sin, torch.cos, (torch.zeros(1),))
        tensor([1.])
    """
    return (true_fn if bool(pred) else false_fn)(*operands)


def while_loop(cond_fn, body_fn, carried_inputs):
    """Repeats carried = body_fn(*carried) while cond_fn(*carried).

    Args:
        cond_fn (callable): gives a bool or a tensor of one.
        body_fn (callable): gives a tuple like its arguments.
        carried_inputs (tuple): what it begins with.

    Returns:
        tuple: what is carried at the end.

    Example:
        >>> torch.while_loop(lambda x: x < 10, lambda x: (x * 3,), (torch.tensor(1),))
        (tensor(27),)
    """
    carried = tuple(carried_inputs)
    while bool(cond_fn(*carried)):
        carried = body_fn(*carried)
        carried = tuple(carried) if isinstance(carried, (tuple, list)) else (carried,)
    return carried
