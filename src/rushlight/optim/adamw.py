"""AdamW: Adam with decoupled weight decay."""

from rushlight.optim.adam import Adam, adam

__all__ = ["AdamW", "adamw"]


class AdamW(Adam):
    """Adam whose weight decay multiplies the parameters by 1 - lr * weight_decay, apart from the gradient."""

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=1e-2,
        amsgrad=False,
        *,
        maximize=False,
        foreach=None,
        capturable=False,
        differentiable=False,
        fused=None,
    ):
        options = locals()
        options = {name: options[name] for name in self.layout if name in options}
        super().__init__(params, **options, decoupled_weight_decay=True)

    def __setstate__(self, state):
        super().__setstate__(state)
        # Files written before the option existed were written by AdamW all the same.
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


def adamw(*args, **kwargs):
    """One step of AdamW on lists of tensors, arguments as for `adam`."""
    return adam(*args, **kwargs, decoupled_weight_decay=True)
