"""Steps that change what a tensor is: its memory, shape, gradient, hooks."""

from .registry import step


@step("write", 2)
def set_(T, x, y, z, k):
    if not (x.requires_grad and not T.is_grad_enabled()):  # no other shape behind the graph's back
        x.set_(y)


@step("write", 3)
def geometry(T, x, y, z, k):
    if x.requires_grad and not T.is_grad_enabled():
        return
    if k % 5 == 4:
        x.t_() if k % 3 else x.squeeze_()
    elif k % 4 == 0:
        x.unsqueeze_(k % (x.dim() + 1))
    elif k % 4 == 1:
        x.transpose_(0, -1)
    elif k % 4 == 2:
        x.as_strided_((2,), (1,))
    else:
        # New elements have no value.
        if x.numel() >= 2 and (x.storage_offset() + 2) * x.element_size() <= x.untyped_storage().nbytes():
            x.resize_(2)


@step("write")
def set_data(T, x, y, z, k):
    # Not another shape for a leaf that a graph leads to, nor a tensor that counts no versions.
    if not (x.is_inference() or y.is_inference()) and (
        (x.shape == y.shape and x.dtype == y.dtype) or not x.requires_grad
    ):
        x.data = y if k % 2 else y.detach()


@step("write", 2)
def through_data(T, x, y, z, k):
    (x.data if k % 2 else x.detach()).mul_(2)


@step("write", 2)
def requires_grad_(T, x, y, z, k):
    if x.is_inference():
        return
    if k % 3 == 2:
        x.requires_grad = k % 2 == 0
    else:
        x.requires_grad_(k % 3 == 0)


@step("write")
def retain_grad(T, x, y, z, k):
    x.retain_grad()


@step("write", 2)
def register_hook(T, x, y, z, k):
    hook = (
        lambda g: g * 2,
        lambda g: None,
        lambda g: g.neg(),
        lambda g: g.detach().clone().mul_(3),
        lambda g: g.sum(),
    )[k % 5]
    if k % 7 == 0:
        x.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(2) if k % 3 == 0 else None)
    else:
        x.register_hook(hook)


@step("write")
def set_grad(T, x, y, z, k):
    if k % 4 == 0:
        x.grad = None
    elif k % 4 == 1:
        x.grad = y
    elif x.is_leaf and x.grad is not None:
        (x.grad.zero_ if k % 4 == 2 else x.grad.detach_)()
