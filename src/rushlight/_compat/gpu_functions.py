"""Functions that PyTorch has for GPU libraries alone (cuDNN, MIOpen): there, and refused on the CPU as in PyTorch."""

import inspect

from rushlight._core.compose import public

_HOW = "stride, dilation, groups, benchmark, deterministic"
_FUSED = "stride, padding, dilation, groups"
_NORM = "input, weight, bias, running_mean, running_var, training, exponential_average_factor, epsilon"
_RNN = "mode, hidden_size, num_layers, batch_first, dropout, train, bidirectional, batch_sizes, dropout_state"
_PARAMETERS = {
    "miopen_batch_norm": _NORM,
    "miopen_convolution": f"self, weight, bias, padding, {_HOW}",
    "miopen_convolution_add_relu": f"self, weight, z, alpha, bias, {_FUSED}",
    "miopen_convolution_relu": f"self, weight, bias, {_FUSED}",
    "miopen_convolution_transpose": f"self, weight, bias, padding, output_padding, {_HOW}",
    "miopen_depthwise_convolution": f"self, weight, bias, padding, {_HOW}",
    "miopen_rnn": f"input, weight, weight_stride0, hx, cx, {_RNN}",
    "cudnn_affine_grid_generator": "theta, N, C, H, W",
    "cudnn_batch_norm": _NORM,
    "cudnn_convolution": f"self, weight, padding, {_HOW}, allow_tf32",
    "cudnn_convolution_add_relu": f"self, weight, z, alpha, bias, {_FUSED}",
    "cudnn_convolution_relu": f"self, weight, bias, {_FUSED}",
    "cudnn_convolution_transpose": f"self, weight, padding, output_padding, {_HOW}, allow_tf32",
    "cudnn_grid_sampler": "self, grid",
}


def _refused(name, parameters):
    signature = inspect.Signature(
        [inspect.Parameter(p, inspect.Parameter.POSITIONAL_OR_KEYWORD) for p in parameters.split(", ")]
    )

    def refuse(*args, **kwargs):
        try:
            signature.bind(*args, **kwargs)
        except TypeError as e:
            raise TypeError(f"{name}(): {e}") from None
        library = "MIOpen" if name.startswith("miopen") else "cuDNN"
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the 'CPU' backend: it is {library}'s own. The functions of "
            "torch.nn.functional choose what is there"
        )

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Fails: a function of a library for GPUs."
    refuse.__dict__["__signature__"] = signature
    return public(refuse)


globals().update({name: _refused(name, parameters) for name, parameters in _PARAMETERS.items()})


@public
def cudnn_is_acceptable(self):
    """False: there is no cuDNN."""
    return False
