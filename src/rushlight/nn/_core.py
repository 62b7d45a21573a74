"""The core's functions of neural networks, found once and then plain names of this module.

They are registered as "nn.functional.<name>" where PyTorch shows them there, as "_nn.<name>" where it hides
them in
torch._C._nn, and without a prefix where they are functions of the package too.
"""

import rushlight as rl
from rushlight._core.compose import functions_of

_shown = functions_of("nn.functional")
_hidden = functions_of("_nn")


TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes milliseconds to import
    from typing import Any


def __getattr__(name: str) -> "Any":
    for home in (_hidden, _shown):
        if name in home:
            globals()[name] = home[name]
            return home[name]
    op = getattr(rl, name, None)
    if op is None:
        raise AttributeError(f"the core has no op '{name}'")
    globals()[name] = op
    return op
