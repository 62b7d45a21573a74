"""torch._functorch.functional_call."""

from rushlight._transforms.functional_call import functional_call as functional_call
from rushlight._transforms.functional_call import stack_module_state as stack_module_state
