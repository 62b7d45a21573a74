"""Names of models and of their trained weights, and how builders take weights=, pretrained= and progress=."""

from __future__ import annotations

import enum
import functools
import inspect
import operator
import sys
import warnings
from collections.abc import Callable
from fnmatch import fnmatch
from typing import Any, TypeVar

from .._internally_replaced_utils import load_state_dict_from_url
from . import _files

__all__ = [
    "WeightsEnum",
    "Weights",
    "get_model",
    "get_model_builder",
    "get_model_weights",
    "get_weight",
    "list_models",
]
_BUILDERS: dict = {}  # name: builder


class Weights:
    """A file of trained weights: where it is, what prepares images for it, what is known of it."""

    def __init__(self, url: Any, transforms: Any, meta: Any) -> None:
        self.url = url
        self.transforms = transforms
        self.meta = meta


class WeightsEnum(enum.Enum):
    """The files of trained weights of one model."""

    @classmethod
    def verify(cls, obj: Any) -> Any:
        """A member from a member, from its name ("DEFAULT" among them), or None."""
        if isinstance(obj, str):
            return cls[obj.removeprefix(cls.__name__ + ".")]
        if obj is not None and not isinstance(obj, cls):
            raise TypeError(
                f"Invalid Weight class provided; expected {cls.__name__} but received {type(obj).__name__}."
            )
        return obj

    def get_state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The weights themselves, from the cache or the network."""
        url: Any = self.url
        return load_state_dict_from_url(url, *args, **kwargs)

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return getattr, (type(self), self.name)

    url = property(operator.attrgetter("value.url"))
    transforms = property(operator.attrgetter("value.transforms"))
    meta = property(operator.attrgetter("value.meta"))


class _Meta(dict):
    """What is known of weights; the names of ImageNet's classes are fetched when asked for."""

    def __missing__(self, key: Any) -> Any:
        if key != "categories":
            raise KeyError(key)
        self[key] = _files.imagenet_categories()
        return self[key]


def weights_class(model: Any, module: Any) -> Any:
    """The enumeration of a model's weights, from the table of files."""
    name, rows = _files.rows(model)
    members = {}
    for version, file, preset, options, extra in rows:
        transforms = functools.partial(_preset, preset, **options)
        members[version] = Weights(_files.HOST + file, transforms, _Meta(extra))
    latest = ("1K_V2", "1K_V1", "COCO_V1", "C_T_V2", "SKHT_V2")
    default = next((v for v in reversed(members) if v.endswith(latest)), next(iter(members)))
    members["DEFAULT"] = members[default]
    make: Any = WeightsEnum  # an Enum without members makes one by its functional form
    found = make(name, members, module=module)
    found.__doc__ = f"Trained weights of {model}."
    return found


def _preset(name: Any, **options: Any) -> Any:
    """What prepares images, made when called: Pillow and transforms are not needed before."""
    from rushlight.vision.transforms import _presets

    return getattr(_presets, name)(**options)


_M = TypeVar("_M")


def entry(builder: Callable[..., _M]) -> Callable[..., _M]:
    """A builder of a model, registered by its name. It gets the model's own arguments; weights=, pretrained= and progress=
    are taken here. A builder with a parameter `weights` gets the verified member too. Its module gets the enumeration.
    """
    name = builder.__name__
    space = vars(sys.modules[builder.__module__])
    kinds = weights_class(name, builder.__module__)
    space[kinds.__name__] = kinds
    if "__all__" in space:
        space["__all__"] += [name, kinds.__name__]
    wants_weights = "weights" in inspect.signature(builder).parameters

    @functools.wraps(builder)
    def build(*args: Any, weights: Any = None, progress: bool = True, **kwargs: Any) -> Any:
        weights = _chosen(name, kinds, args, weights, kwargs)
        if len(args) > 1:
            progress = args[1]
        if weights is not None:
            _fit_classes(weights, kwargs)
        model: Any = builder(weights=weights, **kwargs) if wants_weights else builder(**kwargs)
        if weights is not None:
            finish = getattr(model, "_adapt_state_dict", lambda state: state)
            model.load_state_dict(finish(weights.get_state_dict(progress=progress, check_hash=True)))
            after = getattr(model, "_after_weights", None)
            if after is not None:
                after()
        return model

    old = [p for p in inspect.signature(builder).parameters.values() if p.name != "weights"]
    parameter = functools.partial(inspect.Parameter, kind=inspect.Parameter.KEYWORD_ONLY)
    new = [parameter("weights", default=None), parameter("progress", default=True)]
    new += [p.replace(kind=p.KEYWORD_ONLY) if p.kind is p.POSITIONAL_OR_KEYWORD else p for p in old]
    vars(build)["__signature__"] = inspect.Signature(sorted(new, key=lambda p: p.kind))
    vars(build)["weights_class"] = kinds
    _BUILDERS[name] = build
    return build


def _chosen(name: Any, kinds: Any, args: Any, weights: Any, kwargs: Any) -> Any:
    """The member that weights=, an old pretrained= or a positional argument means."""
    if args:
        if weights is not None or len(args) > 2:
            raise TypeError(f"{name}() takes weights and progress, and the rest by keyword")
        weights = args[0]
    if "pretrained" in kwargs:
        weights = kwargs.pop("pretrained")
        warnings.warn(
            "The parameter 'pretrained' is deprecated since 0.13 and may be removed in the future, please use 'weights' instead.",
            stacklevel=3,
        )
    if weights is True or weights is False:
        first = next((m for m in kinds if m.name.endswith("V1")), None)
        chosen = first if weights else None
        warnings.warn(
            f"Arguments other than a weight enum or `None` for 'weights' are deprecated since 0.13 and may be removed in the "
            f"future. The current behavior is equivalent to passing `weights={chosen!r}`. You can also use "
            f"`weights={kinds.__name__}.DEFAULT` to get the most up-to-date weights.",
            stacklevel=3,
        )
        weights = chosen
    return kinds.verify(weights)


def _fit_classes(weights: Any, kwargs: Any) -> None:
    """The number of classes that the weights are for; another one that was asked for is refused."""
    if "raft" in weights.url:
        return
    classes = weights.meta.get("num_classes", 1000)
    asked = kwargs.setdefault("num_classes", classes)
    if asked != classes:
        raise ValueError(f"The parameter 'num_classes' expected value {classes} but got {asked} instead.")


def list_models(module: Any = None, include: Any = None, exclude: Any = None) -> list[Any]:
    """The names of all models, or of those of a module; include and exclude are patterns such as "resnet*"."""
    names = set(_BUILDERS)
    if module is not None:
        inside = module.__name__.removeprefix("rushlight.vision").removeprefix("torchvision")
        names = {n for n in names if _home(n) == inside or _home(n).rpartition(".")[0] == inside}
    patterns = [include] if isinstance(include, str) else include
    if patterns:
        names = {n for n in names if any(fnmatch(n, p) for p in patterns)}
    for pattern in [exclude] if isinstance(exclude, str) else exclude or []:
        names = {n for n in names if not fnmatch(n, pattern)}
    return sorted(names)


def _home(name: Any) -> Any:
    return _BUILDERS[name].__module__.removeprefix("rushlight.vision")


def get_model_builder(name: Any) -> Any:
    """The function that builds a model of this name."""
    try:
        return _BUILDERS[name.lower()]
    except KeyError:
        import difflib

        near = difflib.get_close_matches(name.lower(), _BUILDERS, 3)
        raise ValueError(
            f"Unknown model {name}" + (f"; near it: {', '.join(near)}" if near else "")
        ) from None


def get_model(name: Any, **config: Any) -> Any:
    """A model by its name, with the arguments of its builder."""
    return get_model_builder(name)(**config)


def get_model_weights(name: Any) -> Any:
    """The enumeration of a model's weights, from its name or its builder."""
    return (name if callable(name) else get_model_builder(name)).weights_class


def get_weight(name: Any) -> Any:
    """A member of an enumeration of weights from its full name: "ResNet50_Weights.IMAGENET1K_V2"."""
    kind, _, member = name.partition(".")
    for builder in _BUILDERS.values():
        if builder.weights_class.__name__ == kind:
            return builder.weights_class[member]
    raise ValueError(f"The weight enum '{kind}' for the specific method couldn't be retrieved.")
