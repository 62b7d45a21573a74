"""Activation checkpointing: drop intermediate results in the forward pass, compute them again in backward.

Two algorithms. `use_reentrant=False` replaces each tensor that backward would save by a number; the first one asked
for runs the function again and collects the tensors by number. `use_reentrant=True` is one autograd Function
whose backward runs the function and then backward through it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import rushlight as rl
from rushlight.autograd import Function

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "detach_variable",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
]

_early_stop = True
_debug = None


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function did not save the tensors that the first one did."""


_DEBUGGED = (
    "\nYou are seeing this error because you passed `debug=True` to checkpoint, or set_checkpoint_debug_enabled(True): compare "
    "the calls of both runs, for example under torch.autograd.profiler.profile()."
)


class _StopRecomputation(Exception):
    """All tensors that backward needs are there: the rest of the function need not run."""


class _setting:
    """Context manager that sets a module global."""

    def __init__(self, name: str, value: Any) -> None:
        self.name, self.value = name, value

    def __enter__(self) -> None:
        self.saved = globals()[self.name]
        globals()[self.name] = self.value

    def __exit__(self, *exc: Any) -> None:
        globals()[self.name] = self.saved


def set_checkpoint_early_stop(enable: bool) -> Any:
    """Within the block, recomputation stops as soon as it has what backward needs, or (False) runs to the end.

    Args:
        enable (bool): whether to stop early, which is the default.

    Example:
        >>> def f(x):
        ...     print("run")
        ...     return x.sin().cos()
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.utils.checkpoint.set_checkpoint_early_stop(False):
        ...     torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False).sum().backward()
        run
        run
    """
    return _setting("_early_stop", enable)


def set_checkpoint_debug_enabled(enabled: bool | None) -> Any:
    """Within the block, overrides the debug argument of checkpoint.

    Args:
        enabled (bool): the value to use; None leaves the argument alone.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.utils.checkpoint.set_checkpoint_debug_enabled(False):
        ...     torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=False).sum().backward()
    """
    return _setting("_debug", enabled)


class _NoContext:
    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc: Any) -> None:
        return None


def noop_context_fn() -> tuple[Any, Any]:
    """The default context_fn of checkpoint: two contexts that do nothing.

    Example:
        >>> forward, recompute = torch.utils.checkpoint.noop_context_fn()
        >>> with forward:
        ...     pass
    """
    return _NoContext(), _NoContext()


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tensors of a tuple as fresh leaves with the same requires_grad; other things as they are.

    Args:
        inputs (tuple): of tensors and other things.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> torch.utils.checkpoint.detach_variable((x * 2, 3))
        (tensor([2., 2.], requires_grad=True), 3)
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}"
        )
    return tuple(
        x.detach().requires_grad_(x.requires_grad) if isinstance(x, rl.Tensor) and _differentiable(x) else x
        for x in inputs
    )


def _differentiable(t: Any) -> Any:
    return t.dtype.is_floating_point or t.dtype.is_complex


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warns if no tensor among the inputs asks for a gradient.

    Args:
        inputs (iterable): the arguments of a checkpointed function.

    Example:
        >>> torch.utils.checkpoint.check_backward_validity((torch.ones(1, requires_grad=True), 2))
    """
    if not any(x.requires_grad for x in inputs if isinstance(x, rl.Tensor)):
        import warnings

        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=4)


class _Surroundings:
    """State outside the function that its second run must find again: random generator and autocast."""

    def __init__(self, preserve_rng: Any) -> None:
        self.rng = rl.get_rng_state() if preserve_rng else None
        self.autocast = None
        if hasattr(rl, "is_autocast_enabled"):
            try:
                self.autocast = rl.is_autocast_enabled("cpu"), rl.get_autocast_dtype("cpu")
            except (TypeError, AttributeError):
                self.autocast = None

    def __enter__(self) -> None:
        if self.rng is not None:
            self.outer_rng = rl.get_rng_state()
            rl.set_rng_state(self.rng)
        self.casting = None
        if self.autocast is not None:
            enabled, dtype = self.autocast
            self.casting = rl.autocast("cpu", dtype=dtype, enabled=enabled)
            self.casting.__enter__()

    def __exit__(self, *exc: Any) -> None:
        if self.casting is not None:
            self.casting.__exit__(*exc)
        if self.rng is not None:
            rl.set_rng_state(self.outer_rng)


class CheckpointFunction(Function):
    """The autograd Function behind checkpoint(use_reentrant=True): its backward runs the function again.

    Args:
        *args (object): as for every Function, not to be used: call `apply(function, preserve_rng_state,
            *arguments)`.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> torch.utils.checkpoint.CheckpointFunction.apply(torch.exp, True, x).sum().backward()
        >>> x.grad
        tensor([2.7183, 2.7183])
    """

    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: Any, *args: Any) -> Any:
        """Runs the function without recording it."""
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.surroundings = _Surroundings(preserve_rng_state)
        ctx.others = [None if isinstance(x, rl.Tensor) else x for x in args]
        ctx.positions = [i for i, x in enumerate(args) if isinstance(x, rl.Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.positions))
        with rl.no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Runs the function again, recorded, and backward through it."""
        valid = getattr(rl.autograd, "_is_checkpoint_valid", None)
        if valid is not None and not valid():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an "
                "`inputs` parameter to .backward(). To resolve this error, you can either set "
                "use_reentrant=False, or call .backward() without passing the `inputs` argument."
            )
        args = list(ctx.others)
        for i, t in zip(ctx.positions, ctx.saved_tensors, strict=True):
            args[i] = t
        args = detach_variable(tuple(args))
        with ctx.surroundings, rl.enable_grad():
            outputs = ctx.run_function(*args)
        if isinstance(outputs, rl.Tensor):
            outputs = (outputs,)
        live = [
            (o, g)
            for o, g in zip(outputs, grads, strict=True)
            if isinstance(o, rl.Tensor) and o.requires_grad
        ]
        if not live:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        rl.autograd.backward([o for o, _ in live], [g for _, g in live])
        return (None, None, *(x.grad if isinstance(x, rl.Tensor) else None for x in args))


class _SaveInputs(Function):
    """Holds the tensor arguments the way a node does: version-checked, and packed by an outer checkpoint."""

    @staticmethod
    def forward(ctx: Any, anchor: Any, *tensors: Any) -> Any:
        ctx.save_for_backward(*tensors)
        return anchor.new_empty(0)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise AssertionError("never part of a loss")


def _metadata(t: Any) -> Any:
    return {"shape": t.shape, "dtype": t.dtype, "device": t.device}


class _Frame:
    """One call of `checkpoint(use_reentrant=False)`."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: Any,
        kwargs: dict[str, Any],
        preserve_rng_state: Any,
        recompute_context: Any,
        check: Any,
        early_stop: Any,
    ) -> None:
        self.function, self.kwargs = function, kwargs
        self.surroundings = _Surroundings(preserve_rng_state)
        self.recompute_context, self.check, self.early_stop = recompute_context, check, early_stop
        self.debug = False
        self.saved: list[Any] = []  # metadata of each tensor saved by the forward pass, in order
        self.recomputed: dict[int, Any] = {}  # number -> tensor, until backward fetches it
        self.complete = False  # whether the forward pass has ended: a backward inside it needs a part only
        self.run = None  # the backward that they were recomputed for
        self.others = [None if isinstance(x, rl.Tensor) else x for x in args]
        self.positions = [i for i, x in enumerate(args) if isinstance(x, rl.Tensor)]
        anchor = rl.empty(0, requires_grad=True)
        with rl.enable_grad():
            self.inputs = _SaveInputs.apply(anchor, *(args[i] for i in self.positions)).grad_fn

    def pack(self, t: Any) -> Any:
        self.saved.append(_metadata(t))
        return len(self.saved) - 1

    def unpack(self, number: int) -> Any:
        run = rl._C.ops["_backward_run"]()
        if run < 0 or run != self.run:
            self.recompute()
            self.run = run
        if number not in self.recomputed:
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. If you are "
                "calling ctx.saved_tensors in backward, make sure to do so only once: what was recomputed is freed when it "
                "is fetched."
            )
        return self.recomputed.pop(number)

    def recompute(self) -> None:
        tensors: list[Any] = []

        def collect(t: Any) -> Any:
            if len(tensors) == len(self.saved):
                if not self.complete:
                    return t.detach() if t.requires_grad else t
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original "
                    f"forward pass, which saved {len(self.saved)}.\n"
                    "The function must do the same each time it is called with the same arguments."
                )
            tensors.append(t.detach() if t.requires_grad else t)
            if self.early_stop and len(tensors) == len(self.saved):
                raise _StopRecomputation
            return tensors[-1]

        args = list(self.others)
        for i, t in zip(self.positions, self.inputs.saved_tensors, strict=True):
            args[i] = t
        try:
            with (
                self.surroundings,
                rl.enable_grad(),
                rl.autograd.graph.saved_tensors_hooks(collect, lambda t: t),
                self.recompute_context,
            ):
                self.function(*args, **self.kwargs)
        except _StopRecomputation:
            pass
        self.verify(tensors)
        self.recomputed = dict(enumerate(tensors))

    def verify(self, tensors: Any) -> None:
        if len(tensors) != len(self.saved):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward "
                f"and recomputation.\nNumber of tensors saved during forward: {len(self.saved)}\n"
                f"Number of tensors saved during recomputation: {len(tensors)}.\n"
                "The function must do the same each time it is called with the same arguments."
            )
        if self.check == "none":
            return
        wrong = ""
        for i, (before, t) in enumerate(zip(self.saved, tensors, strict=True)):
            if before != _metadata(t):
                wrong += (
                    f"tensor at position {i}:\nsaved metadata: {before}\nrecomputed metadata: "
                    f"{_metadata(t)}\n"
                )
        if wrong:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata "
                f"than during the forward pass.\n{wrong}"
                "The function must do the same each time it is called with the same arguments."
                + (_DEBUGGED if self.debug else "")
            )


def _warn_unset(where: Any) -> None:
    import warnings

    warnings.warn(
        f"{where}: the use_reentrant parameter should be passed explicitly. use_reentrant=False is "
        "recommended; "
        "use_reentrant=True is what it means for now when left out.",
        stacklevel=3,
    )


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], Any] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Calls function(*args, **kwargs) without keeping what its backward needs: backward computes that again.

    Memory for intermediate results is traded for a second run of the function, which must do the same as the
    first.

    Args:
        function (callable): to run, twice if backward comes.
        *args (object): its arguments.
        use_reentrant (bool): False (recommended) replaces each saved tensor by one computed when backward asks
            for it; True runs a backward within backward, and knows no keyword arguments. None warns and means
            True. Default: None
        context_fn (callable): returns two contexts, for the first and the second run. Default: noop_context_fn
        determinism_check (str): "default" compares the tensors of both runs by shape and type, "none" does not.
            Default: "default"
        debug (bool): says more in the error of the comparison. Default: False
        early_stop (bool): ends the second run when backward has what it needs. Default: True
        **kwargs (object): more arguments; preserve_rng_state=False spares the random generator's state, so that
            random numbers differ in the second run.

    Raises:
        CheckpointError: in backward, if the second run saved other tensors than the first.

    Example:
        >>> layer = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
        >>> x = torch.randn(8, 4)
        >>> y = torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)
        >>> y.sum().backward()
        >>> layer[0].weight.grad.shape
        torch.Size([64, 4])
    """
    if use_reentrant is None:
        _warn_unset("torch.utils.checkpoint")
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve, *args)
    if determinism_check not in ("default", "none"):
        raise ValueError(
            f"determinism_check should be one of ['default', 'none'], but got {determinism_check}"
        )
    if not rl.is_grad_enabled():
        return function(*args, **kwargs)
    forward_context, recompute_context = context_fn()
    frame = _Frame(
        function, args, kwargs, preserve, recompute_context, determinism_check, early_stop and _early_stop
    )
    frame.debug = bool(debug if _debug is None else _debug)
    with rl.autograd.graph.saved_tensors_hooks(frame.pack, frame.unpack), forward_context:
        result = function(*args, **kwargs)
    frame.complete = True
    return result


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Runs a sequence of modules in segments, each but the last of them checkpointed.

    Args:
        functions (Sequential or list of callables): each takes the result of the one before.
        segments (int): how many pieces the sequence is cut into.
        input (Tensor): of the first function.
        use_reentrant (bool): as in checkpoint. Default: None
        **kwargs (bool): preserve_rng_state, as in checkpoint.

    Example:
        >>> model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU())
        >>> x = torch.randn(2, 4)
        >>> y = torch.utils.checkpoint.checkpoint_sequential(model, 2, x, use_reentrant=False)
        >>> torch.equal(y, model(x))
        True
    """
    if use_reentrant is None:
        _warn_unset("torch.utils.checkpoint.checkpoint_sequential")
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions.children()) if isinstance(functions, rl.nn.Sequential) else list(functions)
    size = len(functions) // segments
    if size == 0:
        raise ValueError(
            f"checkpoint_sequential: {len(functions)} functions cannot be divided into {segments} segments"
        )

    def run(start: Any, stop: Any) -> Any:
        def forward(x: Any) -> Any:
            for function in functions[start:stop]:
                x = function(x)
            return x

        return forward

    stop = 0
    for start in range(0, size * (segments - 1), size):
        stop = start + size
        input = checkpoint(run(start, stop), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return run(stop, len(functions))(input)


def get_device_states(*args: Any) -> Any:
    """The devices of the tensors and the states of their generators, the CPU's aside."""
    return [], []


def set_device_states(devices: Any, states: Any, *, device_type: str | None = None) -> None:
    """Puts states of get_device_states back."""


from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute  # noqa: E402

__getattr__ = _unsupported_attribute(__name__, "rushlight.utils._selective_checkpoint")
