"""How a functional finds the kernel for the type of its input.

A functional is a signature (see `functional`); kernels are registered for the types they take. A kernel for tensors of a kind works on
plain ones: `kernel_for` unwraps them, leaves out the options that the kernel does not have, and gives it the attributes it asks for.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

import rushlight as rl
from rushlight.vision import tv_tensors
from rushlight.vision.utils import _log_api_usage_once

PIL_IMAGE = "PIL.Image.Image"  # stands for the class, so that Pillow is imported by those who use it
_KERNEL_REGISTRY: dict = {}  # functional -> {type: kernel}
_ATTRIBUTES = ("format", "canvas_size", "clamping_mode")


def is_pure_tensor(inpt: Any) -> bool:
    """Whether a value is a tensor of no kind."""
    return isinstance(inpt, rl.Tensor) and not isinstance(inpt, tv_tensors.TVTensor)


def functional(stub: Any) -> Any:
    """A function with the signature of `stub` that calls the kernel for the type of its first argument."""
    signature = inspect.signature(stub)

    @functools.wraps(stub)
    def call(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        (_, inpt), *options = bound.arguments.items()
        _log_api_usage_once(call)
        return _get_kernel(call, type(inpt))(inpt, **dict(options))

    return call


def _key(cls: Any) -> Any:
    return PIL_IMAGE if cls.__module__ == "PIL.Image" and cls.__name__ == "Image" else cls


def _registry(function: Any, input_type: Any) -> Any:
    registry = _KERNEL_REGISTRY.setdefault(function, {})
    if input_type in registry:
        raise ValueError(f"Functional {function} already has a kernel registered for type {input_type}.")
    return registry


def _adapted(function: Any, kernel: Any) -> Any:
    """A kernel of plain tensors for tensors of a kind, with the functional's options."""
    names = list(inspect.signature(function).parameters)[1:]
    takes = set(list(inspect.signature(kernel).parameters)[1:])
    attributes = [name for name in _ATTRIBUTES if name in takes and name not in names]

    @functools.wraps(kernel)
    def adapted(inpt: Any, *args: Any, **kwargs: Any) -> Any:
        options = {**dict(zip(names, args)), **kwargs}
        options = {name: value for name, value in options.items() if name in takes}
        options.update((name, getattr(inpt, name)) for name in attributes)
        output = kernel(inpt.as_subclass(rl.Tensor), **options)
        if isinstance(output, tuple):
            output, canvas_size = output
            return tv_tensors.wrap(output, like=inpt, canvas_size=canvas_size)
        return tv_tensors.wrap(output, like=inpt)

    return adapted


def kernel_for(function: Any, *types: Any) -> Any:
    """Registers a kernel of a functional for types, which may be tensors of a kind."""

    def register(kernel: Any) -> Any:
        for cls in types:
            of_kind = isinstance(cls, type) and issubclass(cls, tv_tensors.TVTensor)
            _registry(function, cls)[cls] = _adapted(function, kernel) if of_kind else kernel
        return kernel

    return register


def image_kernel(function: Any) -> Any:
    """Registers a kernel for plain tensors, images, and (under a name of its own, which is left on it) videos."""

    def register(kernel: Any) -> Any:
        @functools.wraps(kernel)
        def video_kernel(video: Any, *args: Any, **kwargs: Any) -> Any:
            return kernel(video, *args, **kwargs)

        name = kernel.__name__.removesuffix("_image") + "_video"
        video_kernel.__name__ = video_kernel.__qualname__ = name
        kernel_for(function, rl.Tensor, tv_tensors.Image)(kernel)
        kernel_for(function, tv_tensors.Video)(video_kernel)
        kernel.video = video_kernel
        return kernel

    return register


def _register_kernel_internal(functional: Any, input_type: Any, *, tv_tensor_wrapper: bool = True) -> Any:
    """Registers a kernel as it is, or one that tensors of a kind are unwrapped for."""
    registry = _registry(functional, input_type)

    def register(kernel: Any) -> Any:
        if tv_tensor_wrapper and issubclass(input_type, tv_tensors.TVTensor):

            @functools.wraps(kernel)
            def wrapper(inpt: Any, *args: Any, **kwargs: Any) -> Any:
                output = kernel(inpt.as_subclass(rl.Tensor), *args, **kwargs)
                return tv_tensors.wrap(output, like=inpt)

            registry[_key(input_type)] = wrapper
        else:
            registry[_key(input_type)] = kernel
        return kernel

    return register


_BUILTIN = (
    tv_tensors.Image,
    tv_tensors.Video,
    tv_tensors.Mask,
    tv_tensors.BoundingBoxes,
    tv_tensors.KeyPoints,
)


def register_kernel(functional: Any, tv_tensor_cls: Any) -> Any:
    """Decorates a kernel of a functional (or of the one of that name) for a class of tensors of a user's own."""
    if isinstance(functional, str):
        import rushlight.vision.transforms.v2.functional as home

        found = vars(home).get(functional)
        if found is None:
            raise ValueError(
                f"Could not find functional with name '{functional}' in torchvision.transforms.v2.functional."
            )
        functional = found
    elif not callable(functional) or not getattr(functional, "__module__", "").startswith(__package__):
        raise ValueError(
            "Kernels can only be registered on functionals from the torchvision.transforms.v2.functional namespace, "
            f"but got {functional}."
        )
    if not (isinstance(tv_tensor_cls, type) and issubclass(tv_tensor_cls, tv_tensors.TVTensor)):
        raise ValueError(
            f"Kernels can only be registered for subclasses of torchvision.tv_tensors.TVTensor, but got {tv_tensor_cls}."
        )
    if tv_tensor_cls in (*_BUILTIN, tv_tensors.TVTensor):
        raise ValueError(
            f"Kernels cannot be registered for the builtin tv_tensor classes, but got {tv_tensor_cls}"
        )
    return _register_kernel_internal(functional, tv_tensor_cls, tv_tensor_wrapper=False)


def _get_kernel(functional: Any, input_type: Any, *, allow_passthrough: bool = False) -> Any:
    """The kernel of a functional for a type; without one, the identity or an error."""
    registry = _KERNEL_REGISTRY.get(functional)
    if not registry:
        raise ValueError(f"No kernel registered for functional {functional.__name__}.")
    for cls in input_type.__mro__:
        if _key(cls) in registry:
            return registry[_key(cls)]
        if cls is tv_tensors.TVTensor:  # tensors of an unknown kind are not images
            break
    if allow_passthrough:
        return lambda inpt, *args, **kwargs: inpt
    raise TypeError(
        f"Functional F.{functional.__name__} supports inputs of type {list(registry)}, but got {input_type} instead."
    )
