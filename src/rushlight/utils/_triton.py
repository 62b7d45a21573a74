"""What PyTorch's compiler asks about Triton: it is not used here."""


def has_triton_package():
    return False


def has_triton():
    return False


def has_triton_tma():
    return False
