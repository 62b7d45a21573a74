"""The core's ops that PyTorch keeps in torch._C._nn, found once and then plain names of this module."""

import rushlight as rl


def __getattr__(name):
    for home in (getattr(rl._C, "_nn", None), rl._C, rl):
        op = getattr(home, name, None)
        if op is not None:
            globals()[name] = op
            return op
    raise AttributeError(f"the core has no op '{name}'")
