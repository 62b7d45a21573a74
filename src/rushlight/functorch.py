"""The package functorch: the older address of torch.func, and modules as functions of their parameters."""

import copy

import rushlight as rl
from rushlight._missing import teach as _teach
from rushlight.func import grad as grad
from rushlight.func import grad_and_value as grad_and_value
from rushlight.func import hessian as hessian
from rushlight.func import jacfwd as jacfwd
from rushlight.func import jacrev as jacrev
from rushlight.func import jvp as jvp
from rushlight.func import vjp as vjp
from rushlight.func import vmap as vmap


class FunctionalModuleWithBuffers:
    """function(params, buffers, *inputs): a module that holds no values of its own."""

    def __init__(self, model, names, buffer_names):
        self.stateless_model = model.to("meta")
        self.param_names, self.buffer_names = names, buffer_names

    def __call__(self, params, buffers, *args, **kwargs):
        values = dict(zip((*self.param_names, *self.buffer_names), (*params, *buffers), strict=True))
        return rl.func.functional_call(self.stateless_model, values, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """function(params, *inputs), for a module without buffers."""

    def __call__(self, params, *args, **kwargs):
        return super().__call__(params, (), *args, **kwargs)


def _taken_apart(kind, model, disable_autograd_tracking):
    own = copy.deepcopy(model)
    params, buffers = dict(own.named_parameters()), dict(own.named_buffers())
    if disable_autograd_tracking:
        for p in params.values():
            p.requires_grad_(False)
    values = tuple(params.values()), tuple(buffers.values())
    return kind(copy.deepcopy(model), tuple(params), tuple(buffers)), *values


def make_functional(model, disable_autograd_tracking=False):
    """(function, params) of a module without buffers. torch.func.functional_call needs neither copy."""
    if any(True for _ in model.buffers()):
        raise RuntimeError(
            "make_functional(model): model has buffers. Use make_functional_with_buffers(model)"
        )
    return _taken_apart(FunctionalModule, model, disable_autograd_tracking)[:2]


def make_functional_with_buffers(model, disable_autograd_tracking=False):
    """(function, params, buffers) of a module; function(params, buffers, *inputs)."""
    return _taken_apart(FunctionalModuleWithBuffers, model, disable_autograd_tracking)


def combine_state_for_ensemble(models):
    """(function, params, buffers) of models of one class, their values stacked along a new first dimension."""
    models = list(models)
    if not models:
        raise RuntimeError("combine_state_for_ensemble: expected at least one model")
    params, buffers = rl.func.stack_module_state(models)
    function = FunctionalModuleWithBuffers(copy.deepcopy(models[0]), tuple(params), tuple(buffers))
    return function, tuple(params.values()), tuple(buffers.values())


__getattr__ = _teach(__name__)
