"""What PyTorch's compiler asks about Triton: it is not used here."""

from __future__ import annotations


def has_triton_package() -> bool:
    return False


def has_triton() -> bool:
    return False


def has_triton_tma() -> bool:
    return False
