"""Activations as layers, and multi-head attention."""

from __future__ import annotations

import warnings
from typing import Any

import rushlight as rl
from rushlight._C import Tensor, device, dtype
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.modules.linear import NonDynamicallyQuantizableLinear
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter

__all__ = [
    "Threshold", "ReLU", "RReLU", "Hardtanh", "ReLU6", "Sigmoid", "Hardsigmoid", "Tanh", "SiLU", "Mish",
    "Hardswish",
    "ELU", "CELU", "SELU", "GLU", "GELU", "Hardshrink", "LeakyReLU", "LogSigmoid", "Softplus", "Softshrink",
    "MultiheadAttention", "PReLU", "Softsign", "Tanhshrink", "Softmin", "Softmax", "Softmax2d", "LogSoftmax",
]  # fmt: skip


class _InPlace(Module):
    """What activations with only an `inplace` argument share."""

    __constants__ = ["inplace"]

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class Threshold(Module):
    """Keeps elements above a threshold and replaces the others: y = x if x > threshold, else value.

    Args:
        threshold (float): what x is compared with.
        value (float): what stands for the elements that are not above it.
        inplace (bool): writes the result over the input. Default: False

    Shape:
        input (*) -> (*), any shape

    Example:
        >>> nn.Threshold(0.5, -1.0)(torch.tensor([0.2, 0.5, 0.9]))
        tensor([-1.0000, -1.0000,  0.9000])
    """

    __constants__ = ["threshold", "value", "inplace"]

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class ReLU(_InPlace):
    """Sets negative elements to 0: y = max(0, x).

    The usual activation of convolutional networks. Its gradient is 1 for x > 0 and 0 elsewhere: a unit whose input
    is negative for all samples learns no more ("dies"); `nn.LeakyReLU` and `nn.GELU` keep a gradient there.

    Args:
        inplace (bool): writes the result over the input. Default: False

    Shape:
        input (*) -> (*), any shape

    Example:
        >>> nn.ReLU()(torch.tensor([-1.0, 0.0, 2.0]))
        tensor([0., 0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, self.inplace)


class RReLU(Module):
    """Scales negative elements by random factors: y = x if x >= 0, else a x, a drawn from U(lower, upper).

    a is drawn for every element in training; after `eval()` it is the mean, (lower + upper) / 2.

    Args:
        lower (float): the least factor. Default: 1/8
        upper (float): the greatest factor. Default: 1/3
        inplace (bool): writes the result over the input. Default: False

    Shape:
        input (*) -> (*), any shape

    Example:
        >>> nn.RReLU(0.1, 0.3).eval()(torch.tensor([-1.0, 2.0]))
        tensor([-0.2000,  2.0000])
    """

    __constants__ = ["lower", "upper", "inplace"]

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class Hardtanh(Module):
    """Limits elements to an interval: y = min(max(x, min_val), max_val).

    Args:
        min_val (float): lower end. Default: -1.0
        max_val (float): upper end, greater than min_val. Default: 1.0
        inplace (bool): writes the result over the input. Default: False
        min_value (float): deprecated name of min_val. Default: None
        max_value (float): deprecated name of max_val. Default: None

    Shape:
        input (*) -> (*), any shape

    Gradient:
        1 strictly inside the interval, 0 elsewhere.

    Example:
        >>> nn.Hardtanh(-2.0, 2.0)(torch.tensor([-3.0, 0.5, 3.0]))
        tensor([-2.0000,  0.5000,  2.0000])
    """

    __constants__ = ["min_val", "max_val", "inplace"]

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        for old, new in ((min_value, "min_val"), (max_value, "max_val")):
            if old is not None:
                warnings.warn(
                    f"keyword argument `{new}ue` is deprecated: its name is `{new}`",
                    FutureWarning,
                    stacklevel=2,
                )
        low = min_val if min_value is None else min_value
        high = max_val if max_value is None else max_value
        if not low < high:
            raise AssertionError(f"max_val ({high}) must be greater than min_val ({low})")
        self.min_val, self.max_val, self.inplace = low, high, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class ReLU6(Hardtanh):
    """Limits elements to [0, 6]: y = min(max(0, x), 6).

    The bound suits reduced precision; MobileNets use it.

    Args:
        inplace (bool): writes the result over the input. Default: False

    Shape:
        input (*) -> (*), any shape

    Example:
        >>> nn.ReLU6()(torch.tensor([-1.0, 3.0, 8.0]))
        tensor([0., 3., 6.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class Sigmoid(Module):
    """Maps elements to (0, 1): y = 1 / (1 + e^-x).

    For a probability at the end of a binary classifier. To train it, leave this layer out and take
    `nn.BCEWithLogitsLoss`, which does not underflow.

    Shape:
        input (*) -> (*), any shape

    Example:
        >>> nn.Sigmoid()(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([0.2689, 0.5000, 0.7311])
    """

    def forward(self, input: Tensor) -> Tensor:
        return rl.sigmoid(input)


class Hardsigmoid(_InPlace):
    """Approximates the sigmoid by straight lines: y = min(max(0, x + 3), 6) / 6.

    Args:
        inplace (bool): writes the result over the input. Default: False

    Shape:
        input (*) -> (*), any shape

    Example:
        >>> nn.Hardsigmoid()(torch.tensor([-4.0, 0.0, 1.5, 4.0]))
        tensor([0.0000, 0.5000, 0.7500, 1.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)

    extra_repr = Module.extra_repr


class Tanh(Module):
    """Maps elements to (-1, 1): y = (e^x - e^-x) / (e^x + e^-x).

    Shape:
        input (*) -> (*), any shape

    Example:
        >>> nn.Tanh()(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.7616,  0.0000,  0.7616])
    """

    def forward(self, input: Tensor) -> Tensor:
        return rl.tanh(input)


class SiLU(_InPlace):
    """Multiplies elements by their sigmoid: y = x / (1 + e^-x), also called swish.

    Smooth, and slightly negative for x < 0, with its least value -0.278 near x = -1.278.

    Args:
        inplace (bool): writes the result over the input. Default: False

    Shape:
        input (*) -> (*), any shape

    Example:
        >>> nn.SiLU()(torch.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.2689,  0.0000,  1.7616])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class Mish(_InPlace):
    """Multiplies elements by tanh of their softplus: y = x tanh(log(1 + e^x)).

    Args:
        inplace (bool): writes the result over the input. Default: False

    Shape:
        input (*) -> (*), any shape

    Example:
        >>> nn.Mish()(torch.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.3034,  0.0000,  1.9440])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class Hardswish(_InPlace):
    """Approximates SiLU without exponentials: y = x min(max(0, x + 3), 6) / 6.

    0 up to x = -3 and x from x = 3 on; MobileNetV3 uses it.

    Args:
        inplace (bool): writes the result over the input. Default: False

    Shape:
        input (*) -> (*), any shape

    Example:
        >>> nn.Hardswish()(torch.tensor([-1.0, 1.5, 4.0]))
        tensor([-0.3333,  1.1250,  4.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)

    extra_repr = Module.extra_repr


class ELU(Module):
    """Bends negative elements smoothly towards -alpha: y = x if x > 0, else alpha (e^x - 1).

    Args:
        alpha (float): minus the limit for x -> -infinity. Default: 1.0
        inplace (bool): writes the result over the input. Default: False

    Shape:
        input (*) -> (*), any shape

    Example:
        >>> nn.ELU()(torch.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.6321,  0.0000,  2.0000])
    """

    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class CELU(ELU):
    """Bends negative elements towards -alpha: y = max(0, x) + min(0, alpha (e^(x / alpha) - 1)).

    Unlike `nn.ELU` it has the derivative 1 at 0 for every alpha.

    Args:
        alpha (float): minus the limit for x -> -infinity, and how slowly it is reached. Default: 1.0
        inplace (bool): writes the result over the input. Default: False

    Shape:
        input (*) -> (*), any shape

    Example:
        >>> nn.CELU(0.5)(torch.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.4323,  0.0000,  2.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class SELU(_InPlace):
    """Applies a scaled ELU that keeps mean 0 and variance 1: y = 1.0507 (x if x > 0, else 1.67326 (e^x - 1)).

    It replaces normalisation layers in fully connected networks whose weights start with variance 1 / fan_in
    (`nn.init.kaiming_normal_(w, nonlinearity="linear")`) and that drop with `nn.AlphaDropout`.

    Args:
        inplace (bool): writes the result over the input. Default: False

    Shape:
        input (*) -> (*), any shape

    Example:
        >>> nn.SELU()(torch.tensor([-1.0, 0.0, 2.0]))
        tensor([-1.1113,  0.0000,  2.1014])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class GLU(Module):
    """Gates one half of the input with the other: y = a sigmoid(b), where x = [a, b] along dim.

    Args:
        dim (int): the dimension that is halved; its size must be even. Default: -1

    Shape:
        input (*, 2 N, *) -> (*, N, *)

    Example:
        >>> nn.GLU()(torch.tensor([1.0, 2.0, 0.0, 10.0]))
        tensor([0.5000, 1.9999])
    """

    __constants__ = ["dim"]

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class GELU(Module):
    """Multiplies elements by the normal distribution function: y = x Phi(x), Phi(x) = (1 + erf(x / sqrt(2))) / 2.

    The activation of most transformers. Checkpoints differ in the form they were trained with: BERT's is exact,
    GPT-2's is 'tanh'.

    Args:
        approximate (str): 'none' for the formula above, or 'tanh' for
            0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))). Default: 'none'

    Shape:
        input (*) -> (*), any shape

    Example:
        >>> nn.GELU()(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.1587,  0.0000,  0.8413])
        >>> nn.GELU(approximate="tanh")(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.1588,  0.0000,  0.8412])
    """

    __constants__ = ["approximate"]

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Hardshrink(Module):
    """Sets elements near 0 to 0: y = x if |x| > lambd, else 0.

    Args:
        lambd (float): the greatest magnitude that becomes 0. Default: 0.5

    Shape:
        input (*) -> (*), any shape

    Example:
        >>> nn.Hardshrink()(torch.tensor([-1.0, 0.3, 0.5, 2.0]))
        tensor([-1.,  0.,  0.,  2.])
    """

    __constants__ = ["lambd"]

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class LeakyReLU(Module):
    """Scales negative elements down instead of dropping them: y = x if x > 0, else negative_slope x.

    Args:
        negative_slope (float): the factor of negative elements. Default: 0.01
        inplace (bool): writes the result over the input. Default: False

    Shape:
        input (*) -> (*), any shape

    Example:
        >>> nn.LeakyReLU(0.1)(torch.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.1000,  0.0000,  2.0000])
    """

    __constants__ = ["inplace", "negative_slope"]

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class LogSigmoid(Module):
    """Takes the logarithm of the sigmoid: y = -log(1 + e^-x), computed without overflow.

    Shape:
        input (*) -> (*), any shape

    Example:
        >>> nn.LogSigmoid()(torch.tensor([-100.0, 0.0]))
        tensor([-100.0000,   -0.6931])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softplus(Module):
    """Smooths the ReLU: y = log(1 + e^(beta x)) / beta.

    Always positive: the usual way to get a variance or a rate out of a network.

    Args:
        beta (float): sharpness; the greater, the nearer to ReLU. Default: 1.0
        threshold (float): where beta x is greater, y = x, which avoids overflow. Default: 20.0

    Shape:
        input (*) -> (*), any shape

    Example:
        >>> nn.Softplus()(torch.tensor([-2.0, 0.0, 30.0]))
        tensor([ 0.1269,  0.6931, 30.0000])
    """

    __constants__ = ["beta", "threshold"]

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Softshrink(Module):
    """Moves elements towards 0: y = x - lambd if x > lambd, x + lambd if x < -lambd, else 0.

    The proximal step of an L1 penalty (soft thresholding).

    Args:
        lambd (float): how far, not negative. Default: 0.5

    Shape:
        input (*) -> (*), any shape

    Example:
        >>> nn.Softshrink()(torch.tensor([-1.0, 0.25, 2.0]))
        tensor([-0.5000,  0.0000,  1.5000])
    """

    __constants__ = ["lambd"]

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class PReLU(Module):
    """Scales negative elements by a learned factor: y = x if x > 0, else weight x.

    Leave the weight out of weight decay, which would draw it to a plain ReLU.

    Args:
        num_parameters (int): 1 for one factor in all, or the number of channels for one each. Default: 1
        init (float): first value of the factors. Default: 0.25
        device (device): where the parameters are made. Default: the default device
        dtype (dtype): their type. Default: torch.get_default_dtype()

    Shape:
        input (*) or, for several factors, (N, C, *) -> the same; channels are dimension 1

    Attributes:
        weight (num_parameters,): the factors, all init at first.

    Example:
        >>> nn.PReLU()(torch.tensor([-1.0, 2.0]))
        tensor([-0.2500,  2.0000], grad_fn=<PreluKernelBackward0>)
    """

    __constants__ = ["num_parameters"]

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        device: device | str | int | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(rl.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets all factors to `init` again."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Softsign(Module):
    """Maps elements to (-1, 1): y = x / (1 + |x|).

    Like tanh, with tails that approach the limits slowly.

    Shape:
        input (*) -> (*), any shape

    Example:
        >>> nn.Softsign()(torch.tensor([-1.0, 0.0, 3.0]))
        tensor([-0.5000,  0.0000,  0.7500])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """Subtracts the hyperbolic tangent: y = x - tanh(x).

    Shape:
        input (*) -> (*), any shape

    Example:
        >>> nn.Tanhshrink()(torch.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.2384,  0.0000,  1.0360])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class _AlongDim(Module):
    __constants__ = ["dim"]

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("dim", None)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmin(_AlongDim):
    """Maps scores to weights that favour the least: y_i = e^-x_i / sum_j e^-x_j along dim.

    Args:
        dim (int): the dimension whose weights sum to 1; None warns and guesses. Default: None

    Shape:
        input (*) -> (*), any shape

    Example:
        >>> nn.Softmin(dim=0)(torch.tensor([1.0, 2.0, 3.0]))
        tensor([0.6652, 0.2447, 0.0900])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax(_AlongDim):
    """Maps scores to probabilities: y_i = e^x_i / sum_j e^x_j along dim.

    The greatest score is subtracted first, so that nothing overflows. Do not put it before
    `nn.CrossEntropyLoss`, which takes the scores themselves; for log probabilities use `nn.LogSoftmax`.

    Args:
        dim (int): the dimension whose probabilities sum to 1; None warns and guesses. Default: None

    Shape:
        input (*) -> (*), any shape

    Example:
        >>> nn.Softmax(dim=1)(torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]))
        tensor([[0.0900, 0.2447, 0.6652],
                [0.3333, 0.3333, 0.3333]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim, _stacklevel=5)


class LogSoftmax(_AlongDim):
    """Maps scores to log probabilities: y_i = x_i - log sum_j e^x_j along dim.

    More accurate than the logarithm of `nn.Softmax`, and what `nn.NLLLoss` takes.

    Args:
        dim (int): the dimension whose probabilities sum to 1; None warns and guesses. Default: None

    Shape:
        input (*) -> (*), any shape

    Example:
        >>> nn.LogSoftmax(dim=1)(torch.tensor([[0.0, 1000.0]]))
        tensor([[-1000.,     0.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Maps scores to probabilities over the channels at each pixel: y_c = e^x_c / sum_k e^x_k.

    Shape:
        input (N, C, H, W) or (C, H, W) -> the same

    Example:
        >>> y = nn.Softmax2d()(torch.randn(2, 3, 4, 4))
        >>> bool(torch.allclose(y.sum(1), torch.ones(2, 4, 4)))
        True
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, _stacklevel=5)


class MultiheadAttention(Module):
    """Attends with several heads: concat(head_1, ..., head_h) W_O^T + b_O.

    Each head is softmax(q k^T / sqrt(d)) v of its own projections q, k and v of query, key and value, of width
    d = embed_dim / num_heads. Self-attention passes one tensor three times. need_weights=False in the call
    lets a fused kernel run, which is faster and keeps no L x S matrix.

    Args:
        embed_dim (int): width of queries and of the output, E.
        num_heads (int): number of heads, which divides embed_dim.
        dropout (float): probability of dropping an attention weight in training. Default: 0.0
        bias (bool): whether the projections have biases. Default: True
        add_bias_kv (bool): appends a learned key and value to each sequence. Default: False
        add_zero_attn (bool): appends a key and value of zeros. Default: False
        kdim (int): width of keys. Default: embed_dim
        vdim (int): width of values. Default: embed_dim
        batch_first (bool): tensors are (N, L, E) rather than (L, N, E); the usual mistake is to forget it, as
            (L, N, E) runs without an error. Default: False
        device (device): where the parameters are made. Default: the default device
        dtype (dtype): their type. Default: torch.get_default_dtype()

    Shape:
        query (L, N, E), key (S, N, kdim), value (S, N, vdim) -> (L, N, E), and weights (N, L, S) or None;
        without N for one sample, with N first for batch_first

    Attributes:
        in_proj_weight (3 E, E): W_Q, W_K, W_V, Xavier uniform; with kdim or vdim of their own there are instead
            q_proj_weight (E, E), k_proj_weight (E, kdim) and v_proj_weight (E, vdim).
        in_proj_bias (3 E,): zeros; None with bias=False.
        out_proj (Linear): the one of W_O and b_O, whose bias starts at 0.
        bias_k, bias_v (1, 1, E): Xavier normal, with add_bias_kv; else None.

    Example:
        >>> attention = nn.MultiheadAttention(16, 4, batch_first=True)
        >>> x = torch.randn(2, 5, 16)
        >>> y, weights = attention(x, x, x)
        >>> y.shape, weights.shape
        (torch.Size([2, 5, 16]), torch.Size([2, 5, 5]))
    """

    in_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    __constants__ = ["batch_first"]

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False, add_zero_attn: bool = False, kdim: int | None = None,
        vdim: int | None = None, batch_first: bool = False, device: device | str | int | None = None, dtype: dtype | None = None,
    ) -> None:  # fmt: skip
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got {embed_dim} and {num_heads}"
            )
        super().__init__()
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        if embed_dim % num_heads:
            raise AssertionError(f"embed_dim must be divisible by num_heads, got {embed_dim} and {num_heads}")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn

        # One matrix for queries, keys and values where they are of one width, three otherwise.
        packed = self._qkv_same_embed_dim
        widths = {"q": embed_dim, "k": self.kdim, "v": self.vdim}
        shapes: dict[str, Any] = {
            f"{part}_proj_weight": None if packed else (embed_dim, n) for part, n in widths.items()
        }
        own = {"in_proj_weight": (3 * embed_dim, embed_dim) if packed else None}
        shapes = {**own, **shapes} if packed else {**shapes, **own}
        shapes["in_proj_bias"] = (3 * embed_dim,) if bias else None
        for name, shape in shapes.items():
            self.register_parameter(name, None if shape is None else Parameter(rl.empty(shape, **made)))
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **made)
        for name in ("bias_k", "bias_v"):
            setattr(self, name, Parameter(rl.empty((1, 1, embed_dim), **made)) if add_bias_kv else None)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                init.xavier_normal_(extra)

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def merge_masks(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor
    ) -> tuple[Tensor | None, int | None]:
        """Joins attn_mask and key_padding_mask into one.

        Args:
            attn_mask (Tensor): (L, L) or (N num_heads, L, L), or None.
            key_padding_mask (Tensor): (N, L), or None.
            query (Tensor): (N, L, E).

        Returns:
            (mask, kind): kind 1 for a mask of keys alone, (N, L), 2 for (N, num_heads, L, L); (None, None) without.
        """
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        n, length = query.shape[:2]
        merged = attn_mask.reshape(n, -1, length, length) if attn_mask.dim() == 3 else attn_mask[None, None]
        merged = merged.expand(n, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            padding = key_padding_mask[:, None, None, :]
            merged = merged | padding if merged.dtype == padding.dtype == rl.bool else merged + padding
        return merged, 2

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None, need_weights: bool = True, attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """Attends from query over key and value.

        Args:
            query (Tensor): (L, N, E), or (N, L, E) with batch_first, or (L, E).
            key (Tensor): (S, N, kdim), in the same order.
            value (Tensor): (S, N, vdim).
            key_padding_mask (Tensor): (N, S), True (or -inf, added) at keys to leave out. Default: None
            need_weights (bool): whether to return the attention weights; False is faster. Default: True
            attn_mask (Tensor): (L, S) or (N num_heads, L, S), True (or -inf, added) where a query must not look: the
                opposite of `scaled_dot_product_attention`, whose True takes part. Default: None
            average_attn_weights (bool): weights are averaged over heads, (N, L, S), or (N, num_heads, L, S). Default: True
            is_causal (bool): says that attn_mask is the causal mask; it must be given too. Default: False

        Returns:
            (output, weights), weights None without need_weights.
        """
        batched = query.dim() == 3
        nested = query.is_nested or key.is_nested or value.is_nested
        masks = (attn_mask, key_padding_mask)
        # Without masks both paths have the same result, and the causal mask has a kernel of its own.
        if nested or (not self.training and not (is_causal and attn_mask is None) and masks != (None, None)):
            from rushlight.nn._functional.inference_attention import why_not

            reason = why_not(self, query, key, value, masks)
            if reason is None:
                merged, mask_type = self.merge_masks(*masks, query)
                assert self.in_proj_weight is not None  # why_not says so of another
                return rl._native_multi_head_attention(
                    query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias,
                    self.out_proj.weight, self.out_proj.bias, merged, need_weights, average_attn_weights, mask_type,
                )  # fmt: skip
            if nested:
                raise AssertionError(
                    "MultiheadAttention does not support NestedTensor outside of its fast path. The fast path was not hit because "
                    f"{reason}: use eval() and no_grad(), or scaled_dot_product_attention on jagged tensors"
                )
        key_padding_mask = F._canonical_mask(
            key_padding_mask, "key_padding_mask", F._none_or_dtype(attn_mask), "attn_mask", query.dtype
        )
        attn_mask = F._canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, check_other=False)
        if self.batch_first and batched:
            same_kv, same_qk = key is value, query is key
            query = query.transpose(0, 1)
            key = query if same_qk else key.transpose(0, 1)
            value = key if same_kv else value.transpose(0, 1)
        separate = not self._qkv_same_embed_dim
        result, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias,
            self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias,
            training=self.training, key_padding_mask=key_padding_mask, need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=separate, q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight, average_attn_weights=average_attn_weights, is_causal=is_causal,
        )  # fmt: skip
        if self.batch_first and batched:
            return result.transpose(1, 0), weights
        return result, weights
