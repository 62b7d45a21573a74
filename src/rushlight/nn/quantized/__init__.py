"""The float form of layers for quantization: FloatFunctional. Quantized layers themselves are not here."""

from __future__ import annotations

import rushlight as rl
from rushlight._core.unsupported import add_placeholders as _add_placeholders
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute


class FloatFunctional(rl.nn.Module):
    """Computes sums, products and joins of floats as a module, so that quantization can observe their results.

    Call its methods (`add`, `mul`, `cat`, ...), not the object.
    """

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process = rl.nn.Identity()

    def forward(self, x: rl.Tensor) -> rl.Tensor:
        """Raises RuntimeError: the operations are called by their names.

        Args:
            x (any): not used.
        """
        raise RuntimeError(
            "FloatFunctional is not intended to use the 'forward'. Please use the underlying operation"
        )

    def add(self, x: rl.Tensor, y: rl.Tensor) -> rl.Tensor:
        """Computes x + y.

        Args:
            x (Tensor): left operand.
            y (Tensor): right operand.
        """
        out: rl.Tensor = self.activation_post_process(rl.add(x, y))
        return out

    def add_scalar(self, x: rl.Tensor, y: float) -> rl.Tensor:
        """Computes x + y for a number y.

        Args:
            x (Tensor): left operand.
            y (float): a number.
        """
        return rl.add(x, y)

    def mul(self, x: rl.Tensor, y: rl.Tensor) -> rl.Tensor:
        """Computes x * y.

        Args:
            x (Tensor): left operand.
            y (Tensor): right operand.
        """
        out: rl.Tensor = self.activation_post_process(rl.mul(x, y))
        return out

    def mul_scalar(self, x: rl.Tensor, y: float) -> rl.Tensor:
        """Computes x * y for a number y.

        Args:
            x (Tensor): left operand.
            y (float): a number.
        """
        return rl.mul(x, y)

    def cat(self, x: list[rl.Tensor], dim: int = 0) -> rl.Tensor:
        """Joins tensors along a dimension.

        Args:
            x (sequence of Tensor): what is joined.
            dim (int): the dimension. Default: 0
        """
        out: rl.Tensor = self.activation_post_process(rl.cat(x, dim=dim))
        return out

    def add_relu(self, x: rl.Tensor, y: rl.Tensor) -> rl.Tensor:
        """Computes max(0, x + y).

        Args:
            x (Tensor): left operand.
            y (Tensor): right operand.
        """
        out: rl.Tensor = self.activation_post_process(rl.relu(rl.add(x, y)))
        return out

    def matmul(self, x: rl.Tensor, y: rl.Tensor) -> rl.Tensor:
        """Computes the matrix product x @ y.

        Args:
            x (Tensor): left operand.
            y (Tensor): right operand.
        """
        out: rl.Tensor = self.activation_post_process(rl.matmul(x, y))
        return out


_add_placeholders(
    globals(),
    "BatchNorm2d Conv1d Conv2d Conv3d ConvTranspose2d Embedding LSTM Linear QFunctional ReLU6 LayerNorm",
)
__getattr__ = _unsupported_attribute(__name__)
