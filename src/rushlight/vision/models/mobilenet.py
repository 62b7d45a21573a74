"""MobileNets."""

from . import mobilenetv2, mobilenetv3

__all__ = mobilenetv2.__all__ + mobilenetv3.__all__
globals().update({name: getattr(mobilenetv2, name) for name in mobilenetv2.__all__})
globals().update({name: getattr(mobilenetv3, name) for name in mobilenetv3.__all__})
