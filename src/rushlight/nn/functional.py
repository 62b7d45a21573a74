"""Stateless twins of the layers. Functions that the core has under PyTorch's own name are the core's own."""

from __future__ import annotations

from rushlight._core.compose import _overridable
from rushlight.nn import _core
from rushlight.nn._core_functional import *  # noqa: F403
from rushlight.nn._functional.dropout import (  # noqa: F401
    alpha_dropout,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
)  # fmt: skip
from rushlight.nn._functional.embedding import embedding  # noqa: F401
from rushlight.nn._functional.loss import (  # noqa: F401
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    ctc_loss,
    gaussian_nll_loss,
    huber_loss,
    kl_div,
    l1_loss,
    linear_cross_entropy,
    mse_loss,
    nll_loss,
    poisson_nll_loss,
    smooth_l1_loss,
)  # fmt: skip
from rushlight.nn._functional.normalization import (  # noqa: F401
    _verify_batch_size,
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    local_response_norm,
    normalize,
    rms_norm,
)  # fmt: skip
from rushlight.nn._functional.pooling import (  # noqa: F401
    _unpool_output_size,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices,
    fractional_max_pool2d,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d,
    fractional_max_pool3d_with_indices,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool1d_with_indices,
    max_pool2d,
    max_pool2d_with_indices,
    max_pool3d,
    max_pool3d_with_indices,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)  # fmt: skip
from rushlight.nn._functional.softmax import (  # noqa: F401
    _get_softmax_dim,
    gumbel_softmax,
    log_softmax,
    softmax,
    softmin,
)  # fmt: skip
from rushlight.nn._functional.vision import affine_grid, fold, pad, unfold  # noqa: F401

# Loaded when first asked for: the file of each.
_LATER = {
    "embedding_bag": "embedding",
    "grid_sample": "grid_sample",
    "GRID_SAMPLE_INTERPOLATION_MODES": "grid_sample",
    "GRID_SAMPLE_PADDING_MODES": "grid_sample",
    "interpolate": "interpolate",
    "upsample": "interpolate",
    "upsample_nearest": "interpolate",
    "upsample_bilinear": "interpolate",
    "multi_head_attention_forward": "attention",
    "_mha_shape_check": "attention",
    "_canonical_mask": "attention",
    "_none_or_dtype": "attention",
    "_in_projection": "attention",
    "_in_projection_packed": "attention",
    "cosine_embedding_loss": "margin_loss",
    "hinge_embedding_loss": "margin_loss",
    "margin_ranking_loss": "margin_loss",
    "multi_margin_loss": "margin_loss",
    "multilabel_margin_loss": "margin_loss",
    "multilabel_soft_margin_loss": "margin_loss",
    "pairwise_distance": "margin_loss",
    "soft_margin_loss": "margin_loss",
    "triplet_margin_loss": "margin_loss",
    "triplet_margin_with_distance_loss": "margin_loss",
    "scaled_dot_product_attention": "scaled_dot_product",
    "grouped_mm": "linear",
}
_CORE = {
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "adaptive_avg_pool1d", "celu_", "channel_shuffle", "conv1d",
    "conv2d",
    "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_similarity",
    "elu_",
    "gelu", "hardshrink", "hardtanh_", "leaky_relu_", "linear", "native_channel_shuffle", "one_hot", "pdist",
    "pixel_shuffle", "pixel_unshuffle", "prelu", "relu_", "selu_", "softplus", "softshrink", "threshold_",
}  # fmt: skip

_OF_OVERRIDES = (
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
)

_threshold = _core._shown["threshold"]
for _name, _value in list(globals().items()):
    if (
        type(_value) is type(softmax)
        and not _name.startswith("_")
        and _value.__module__ != "rushlight._C._nn"
    ):
        globals()[_name] = _overridable(_value)
        globals()[_name].__module__ = __name__  # its address, for pickles


TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes milliseconds to import
    from typing import Any


def __getattr__(name: str) -> Any:
    if name in _CORE:
        value = getattr(_core, name)
    elif name in _OF_OVERRIDES:
        from rushlight import overrides

        value = getattr(overrides, name)
    elif name in _LATER:
        from importlib import import_module

        value = getattr(import_module(f"rushlight.nn._functional.{_LATER[name]}"), name)
        if type(value) is type(softmax) and value.__module__ != "rushlight":  # those are the package's own
            value = _overridable(value)
            value.__module__ = __name__
            if name == "scaled_dot_product_attention":  # where PyTorch has it
                value.__module__ = "rushlight._C._nn"
    elif name == "Tensor":
        from rushlight import Tensor as value
    elif name == "grad":
        from rushlight.nn import grad as value
    elif name in ("_VF", "_Reduction"):
        from importlib import import_module

        value = import_module({"_VF": "rushlight._VF", "_Reduction": "rushlight.nn._reduction"}[name])
    else:
        from rushlight._core.unsupported import no_name

        raise no_name(__name__, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, *_CORE})


__all__ = sorted({n for n in (*globals(), *_LATER, *_CORE) if not n.startswith("_")})
