"""Names of torch._dynamo.utils that programs ask."""


def is_compile_supported(device_type):
    """Whether torch.compile makes machine code for a device: no, it keeps the code Python."""
    return False


from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute  # noqa: E402

__getattr__ = _unsupported_attribute(__name__)
