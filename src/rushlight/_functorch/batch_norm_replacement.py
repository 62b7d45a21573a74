"""torch._functorch.batch_norm_replacement."""

from rushlight._transforms.functional_call import (
    replace_all_batch_norm_modules_ as replace_all_batch_norm_modules_,
)
