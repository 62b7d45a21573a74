"""Small helpers of models."""

from collections import OrderedDict

from rushlight import nn


def _make_divisible(v, divisor, min_value=None):
    """The multiple of divisor nearest to v, but never 10 % less than v."""
    new = max(divisor if min_value is None else min_value, int(v + divisor / 2) // divisor * divisor)
    return new + divisor if new < 0.9 * v else new


class IntermediateLayerGetter(nn.ModuleDict):
    """The children of a module up to the last one asked for; calling it gives their outputs under new names."""

    def __init__(self, model, return_layers):
        if not set(return_layers).issubset(name for name, _ in model.named_children()):
            raise ValueError("return_layers are not present in model")
        wanted = {str(k): str(v) for k, v in return_layers.items()}
        kept, left = OrderedDict(), set(wanted)
        for name, module in model.named_children():
            kept[name] = module
            left.discard(name)
            if not left:
                break
        super().__init__(kept)
        self.return_layers = wanted

    def forward(self, x):
        out = OrderedDict()
        for name, module in self.items():
            x = module(x)
            if name in self.return_layers:
                out[self.return_layers[name]] = x
        return out
