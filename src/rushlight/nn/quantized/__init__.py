"""The float form of layers for quantization: FloatFunctional. Quantized layers themselves are not here."""

import rushlight as rl
from rushlight._core.unsupported import add_placeholders as _add_placeholders
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute


class FloatFunctional(rl.nn.Module):
    """Computes sums, products and joins of floats as a module, so that quantization can observe their results.

    Call its methods (`add`, `mul`, `cat`, ...), not the object.
    """

    def __init__(self):
        super().__init__()
        self.activation_post_process = rl.nn.Identity()

    def forward(self, x):
        raise RuntimeError(
            "FloatFunctional is not intended to use the 'forward'. Please use the underlying operation"
        )

    def add(self, x, y):
        return self.activation_post_process(rl.add(x, y))

    def add_scalar(self, x, y):
        return rl.add(x, y)

    def mul(self, x, y):
        return self.activation_post_process(rl.mul(x, y))

    def mul_scalar(self, x, y):
        return rl.mul(x, y)

    def cat(self, x, dim=0):
        return self.activation_post_process(rl.cat(x, dim=dim))

    def add_relu(self, x, y):
        return self.activation_post_process(rl.relu(rl.add(x, y)))

    def matmul(self, x, y):
        return self.activation_post_process(rl.matmul(x, y))


_add_placeholders(
    globals(),
    "BatchNorm2d Conv1d Conv2d Conv3d ConvTranspose2d Embedding LSTM Linear QFunctional ReLU6 LayerNorm",
)
__getattr__ = _unsupported_attribute(__name__)
