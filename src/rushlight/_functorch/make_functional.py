"""Modules as functions of their parameters, the way of functorch before torch.func.functional_call."""

from __future__ import annotations

import copy

import rushlight as rl


class FunctionalModuleWithBuffers:
    """function(params, buffers, *inputs): a module that holds no values of its own."""

    def __init__(self, model, names, buffer_names):
        self.names_map = _paths(model)
        self.stateless_model = model.to("meta")
        self.param_names, self.buffer_names = names, buffer_names

    def __call__(self, params, buffers, *args, **kwargs):
        given = zip((*self.param_names, *self.buffer_names), (*params, *buffers), strict=True)
        values = {path: value for name, value in given for path in self.names_map.get(name, (name,))}
        return rl.func.functional_call(self.stateless_model, values, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """function(params, *inputs), for a module without buffers."""

    def __call__(self, params, *args, **kwargs):
        return super().__call__(params, (), *args, **kwargs)


def _paths(model):
    """{first path of a tensor: all of its paths}."""
    of: dict = {}
    for named in (model.named_parameters, model.named_buffers):
        for path, tensor in named(remove_duplicate=False):
            of.setdefault(id(tensor), []).append(path)
    return {paths[0]: tuple(paths) for paths in of.values()}


def _split(kind, model, disable_autograd_tracking):
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
    return _split(FunctionalModule, model, disable_autograd_tracking)[:2]


def make_functional_with_buffers(model, disable_autograd_tracking=False):
    """(function, params, buffers) of a module; function(params, buffers, *inputs)."""
    return _split(FunctionalModuleWithBuffers, model, disable_autograd_tracking)


def combine_state_for_ensemble(models):
    """(function, params, buffers) of models of one class, their values stacked along a new first dimension."""
    models = list(models)
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    params, buffers = rl.func.stack_module_state(models)
    function = FunctionalModuleWithBuffers(copy.deepcopy(models[0]), tuple(params), tuple(buffers))
    return function, tuple(params.values()), tuple(buffers.values())


def functional_init(model_class, ensemble_shape=(), device="cpu"):
    """A function of the class's arguments that gives (parameters, function, names) of such a model, with
    function(parameters, (input, ...)); with an ensemble_shape (n,), parameters of n models, each initialised on its own, along a first dimension."""

    def build(*args, **kwargs):
        weights, buffers, function, names, _ = _initialised(model_class, ensemble_shape, device, args, kwargs)
        if buffers:
            raise RuntimeError("functional_init: the model has buffers. Use functional_init_with_buffers")
        return weights, lambda weights, data: function(weights, (), data), names

    return build


def functional_init_with_buffers(model_class, ensemble_shape=(), device="cpu"):
    """functional_init of a model that may have buffers: (parameters, buffers, function, names, names of buffers)."""
    return lambda *args, **kwargs: _initialised(model_class, ensemble_shape, device, args, kwargs)


def _initialised(model_class, ensemble_shape, device, args, kwargs):
    if len(ensemble_shape) >= 2:
        raise ValueError("NYI: ensemble_shape with more than 1 element")
    if len(ensemble_shape) == 1 and ensemble_shape[0] <= 0:
        raise ValueError(f"num_models {ensemble_shape[0]} should be > 0")
    count = ensemble_shape[0] if ensemble_shape else 1
    models = [model_class(*args, **kwargs).to(device) for _ in range(count)]
    function, *first = make_functional_with_buffers(models[0])
    if ensemble_shape:
        tables = [(tuple(m.parameters()), tuple(m.buffers())) for m in models]
        first = [
            tuple(rl.stack(row).detach() for row in zip(*t, strict=True)) for t in zip(*tables, strict=True)
        ]
        for p, old in zip(first[0], tables[0][0], strict=True):
            p.requires_grad_(old.requires_grad)

    def call(weights, buffers, data):
        return function(weights, buffers, *data)

    call.__dict__["stateless_model"] = function.stateless_model
    return first[0], first[1], call, function.param_names, function.buffer_names
