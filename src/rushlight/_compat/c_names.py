"""Private names of torch._C that popular packages touch, beside those that the extension itself has."""

from __future__ import annotations

import contextlib
import enum
import warnings

import rushlight as rl
from rushlight import _C
from rushlight._core import unsupported
from rushlight._core.compose import factory
from rushlight.overrides import TorchFunctionMode as _Mode


def _nothing(*args, **kwargs):
    return None


def _no(*args, **kwargs):
    return False


_log_api_usage_once = _log_api_usage_metadata = _initExtension = _nothing
_TensorMeta = type(_C.Tensor)
_TensorBase = TensorBase = _C.Tensor
ScriptFunction, ScriptModule = rl.jit.ScriptFunction, rl.jit.ScriptModule
Graph, Value, Node, Block, ScriptMethod, ScriptObject, FunctionSchema, TensorType, JITException, FileCheck = (
    unsupported.placeholder(f"_C.{n}")
    for n in ("Graph", "Value", "Node", "Block", "ScriptMethod", "ScriptObject", "FunctionSchema", "TensorType",
              "JITException", "FileCheck")
)  # fmt: skip
_get_tracing_state = _get_graph_executor_optimize = _jit_clear_class_registry = _nothing
_is_tracing = _are_functorch_transforms_active = _no
for _name in [
    "_jit_can_fuse_on_cpu",
    "_jit_can_fuse_on_gpu",
    "_jit_override_can_fuse_on_cpu",
    "_jit_override_can_fuse_on_gpu",
    "_jit_set_profiling_executor",
    "_jit_set_profiling_mode",
    "_jit_set_nvfuser_enabled",
    "_jit_set_nvfuser_guard_mode",
    "_jit_set_texpr_fuser_enabled",
    "_jit_set_bailout_depth",
    "_jit_nvfuser_enabled",
    "_jit_set_emit_hooks",
    "_jit_texpr_fuser_enabled",
    "_get_cudnn_enabled",
    "_set_math_sdp_allow_fp16_bf16_reduction",
    "_set_sdp_use_flash",
    "_cuda_isDriverSufficient",
    "_cuda_isInBadFork",
    "_has_mkldnn",
    "_has_torch_function_mode",
]:
    globals()[_name] = _no


def _debug_only_display_vmap_fallback_warnings(enabled):
    """Whether functions that vmap runs sample by sample, for want of a rule, say so."""
    from rushlight._transforms.vmap.rules.registry import fallback

    fallback.warns = bool(enabled)


def _debug_only_are_vmap_fallback_warnings_enabled():
    from rushlight._transforms.vmap.rules.registry import fallback

    return fallback.warns


def _get_autograd_fallback_mode():
    from rushlight import library

    return library._fallback_mode


def _set_autograd_fallback_mode(mode):
    """What happens in a backward through an operator that has no formula of its own: "nothing", "warn" or "error"."""
    from rushlight import library

    if mode not in ("nothing", "warn", "error"):
        raise RuntimeError(f"Invalid AutogradFallbackMode: {mode}")
    library._fallback_mode = mode


def _infer_size(a, b):
    """The sizes that two shapes are broadcast to."""
    return rl.broadcast_shapes(a, b)


def _jit_get_emit_hooks():
    return None, None


def _get_mkldnn_enabled():
    return rl.backends.mkldnn.enabled


def _set_mkldnn_enabled(enabled):
    module: Any = rl.backends.mkldnn
    module.enabled = enabled


def _get_accelerator(check=None):
    return rl.device("cpu")


def _get_default_device():
    return str(rl.get_default_device())


def _get_privateuse1_backend_name():
    return "privateuseone"


def _memory_in(value):
    values = value if isinstance(value, (list, tuple)) else [value]
    return {t.untyped_storage()._cdata for t in values if isinstance(t, rl.Tensor) and t.numel()}


def _is_alias_of(a, b):
    """Whether two tensors, or a tensor of one list and one of another, share memory."""
    return bool(_memory_in(a) & _memory_in(b))


_overlaps = _is_alias_of


def _storage_id(tensor):
    """What tells one storage from another."""
    return tensor.untyped_storage()._cdata


def _dispatch_has_kernel_for_dispatch_key(name, key):
    """Whether an operator has a function of its own for a key of the dispatcher."""
    from rushlight._library import kernels, utils

    return kernels.has_kernel(utils.lookup_op(name), str(getattr(key, "name", key)))


def _jit_resolve_packet(name, *args, **kwargs):
    """The name of the overload that a call of an operator would take."""
    space, _, short = name.partition("::")
    packet = getattr(getattr(rl.ops, space), short)
    if hasattr(packet._function, "_bind"):
        from rushlight.ops import resolve

        try:
            return resolve(packet._function, args, kwargs)[0]._overloadname
        except TypeError as error:
            raise RuntimeError(f"{name}: failed to match any schema: {error}") from error
    return "default"


def _dispatch_has_kernel(name):
    from rushlight._library import utils

    try:
        utils.lookup_op(name)
    except AttributeError:
        return False
    return True


def _storage_address(tensor):
    """What tells one storage from another."""
    return tensor.untyped_storage()._cdata


def _data_address(tensor):
    """The address of the first element, whoever else looks at it."""
    return _C.ops["_data_address"](tensor)


def _is_cow_tensor(tensor):
    """Whether its memory is shared with a lazy clone."""
    return _C.ops["_is_lazy"](tensor)


def _get_deterministic_fill_uninitialized_memory():
    return rl._core.convert._fill


def _set_deterministic_fill_uninitialized_memory(on):
    rl._core.convert.set_fill_uninitialized_memory(on)


def _warn():
    warnings.warn("Test message for TORCH_WARN", stacklevel=2)


def _warn_deprecation():
    warnings.warn("Test message for TORCH_WARN_DEPRECATION", DeprecationWarning, stacklevel=2)


def _to_dlpack(tensor):
    return tensor.__dlpack__()


def _from_dlpack(capsule):
    return rl.from_dlpack(capsule)


def _is_torch_function_enabled():
    return _C.ops["_overriding"]() == 0


def _is_torch_function_mode_enabled():
    return _len_torch_function_stack() > 0


def _len_torch_function_stack():
    return len(_function_stack())


def _function_stack():
    """The modes of this thread, outermost first; a default device is one, as in PyTorch."""
    from rushlight.utils import _device

    return [*_device.default(), *_C.ops["_function_modes"]()]


def parse_schema(schema):
    """The FunctionSchema of a text."""
    from rushlight._dispatch.schema import parse

    return parse(schema)


def _dispatch_isTensorSubclassLike(tensor):
    from rushlight import _dispatch

    return _dispatch.dispatches(tensor)


def _show_config():
    from rushlight import __config__

    return __config__.show()


_disabled_torch_function_impl = _C._disabled_torch_function_impl
_disabled_torch_dispatch_impl = _C._disabled_torch_dispatch_impl


class _Guard(contextlib.ContextDecorator):
    """A switch that is set for a block; if `_at_once`, also from its making until its end."""

    _at_once = False

    def _set(self):
        raise NotImplementedError

    def __init__(self):
        self._undo = [self._set()] if self._at_once else []

    def __enter__(self):
        self._undo.append(self._set())
        return self

    def __exit__(self, *exc):
        self._undo.pop()()

    def __del__(self):
        while self._undo:
            self._undo.pop()()


class _Overriding(_Guard):
    _to = 0

    def _set(self):
        before = _C.ops["_swap_overriding"](self._to)
        return lambda: _C.ops["_swap_overriding"](before)


class DisableTorchFunctionSubclass(_Overriding):
    """Classes do not take over functions; modes do."""

    _to = 1


class DisableTorchFunction(_Overriding):
    """Neither classes nor modes take over functions."""

    _to = 2


class _EnableTorchFunction(_Overriding):
    """Classes and modes take over functions again."""

    _at_once = True


class _TorchFunctionState(enum.IntEnum):
    ENABLED, SUBCLASSES_DISABLED, ALL_DISABLED = range(3)


def _get_torch_function_state():
    return _TorchFunctionState(_C.ops["_overriding"]())


def _is_torch_function_all_disabled():
    return _C.ops["_overriding"]() == 2


def _get_function_stack_at(index):
    return _function_stack()[index]


def _push_on_torch_function_stack(mode):
    rl.overrides._push(mode)


def _pop_torch_function_stack():
    return rl.overrides._pop()


class _RestorePythonTLSSnapshot(_Guard):
    """Inside a __torch_dispatch__: calls are recorded by autograd again."""

    _at_once = True

    def _set(self):
        from rushlight import _dispatch

        inside = _dispatch.Reentrant()
        inside.__enter__()
        return lambda: inside.__exit__()


class _AutoDispatchBelowAutograd(_Guard):
    """Calls are not recorded, and operators of programs run what is below their own functions for autograd."""

    _at_once = True

    def _set(self):
        from rushlight._dispatch.custom_op_rules import below_autograd

        before = _C.ops["_set_grad_enabled"](False)
        below_autograd.depth += 1

        def undo():
            below_autograd.depth -= 1
            _C.ops["_set_grad_enabled"](before)

        return undo


class _ExcludeDispatchKeyGuard(_Guard):
    """A block without some of the dispatcher's keys: without those of autograd, calls are not recorded."""

    _at_once = True

    def __init__(self, keys):
        self._keys = keys
        super().__init__()

    def _set(self):
        before = _C.ops["is_grad_enabled"]()
        if any(key.name.startswith("Autograd") for key in self._keys):
            _C.ops["_set_grad_enabled"](False)
        return lambda: _C.ops["_set_grad_enabled"](before)


ExcludeDispatchKeyGuard = _ExcludeDispatchKeyGuard


class _DisableTorchDispatch(_Guard):
    """Classes and modes do not take over primitives: no __torch_dispatch__ is called."""

    _at_once = True

    def _set(self):
        before = _C.ops["_set_torch_dispatch"](False)
        return lambda: _C.ops["_set_torch_dispatch"](before)


class _Functions:
    """torch._C._nn and its like: functions of one family."""

    def __init__(self, *spaces):
        self._spaces = spaces

    def __getattr__(self, name):
        from rushlight._core.compose import functions_of

        for space in self._spaces:
            found = (
                functions_of(space).get(name.removeprefix(space + "_")) if space else getattr(rl, name, None)
            )
            if found is not None:
                setattr(self, name, found)
                return found
        if name == "_parse_to":
            return _parse_to
        if name == "log_sigmoid":
            return rl.nn.functional.logsigmoid
        if "_nn" in self._spaces and not name.startswith("__"):
            from rushlight.nn._functional import private

            if name in vars(private):
                return getattr(private, name)
            if name in ("one_hot", "scaled_dot_product_attention"):
                return getattr(rl.nn.functional, name)
        raise AttributeError(unsupported.explain(f"_C._{self._spaces[0].strip('_')}.{name}"))


_nn = _Functions("_nn", "nn.functional", "")
_linalg, _fft, _special, _sparse = (
    _Functions("linalg"),
    _Functions("fft"),
    _Functions("special"),
    _Functions("sparse"),
)
_VariableFunctions = _VariableFunctionsClass = _Functions("")


@factory
def _parse_to(*args, **kwargs):
    """The (device, dtype, non_blocking, memory_format) that the arguments of `.to(...)` mean."""
    from rushlight.nn.modules._module_convert import _parse_to as parse

    return parse(*args, **kwargs)


class _profiler:
    """torch._C._profiler: stacks of calls."""

    RecordScope = unsupported.placeholder("_C._profiler.RecordScope")

    @staticmethod
    def gather_traceback(python=True, script=False, cpp=False):
        import traceback

        return traceback.extract_stack()[:-1]

    @staticmethod
    def symbolize_tracebacks(stacks):
        return [
            [{"filename": f.filename, "line": f.lineno, "name": f.name} for f in reversed(stack)]
            for stack in stacks
        ]


class _WeakTensorRef:
    """A weak reference to a tensor that says whether it is gone."""

    def __init__(self, tensor):
        import weakref

        self._ref = weakref.ref(tensor)

    def expired(self):
        return self._ref() is None


class _autograd:
    """torch._C._autograd."""

    DeviceType = unsupported.placeholder("_C._autograd.DeviceType")
    SavedTensor = _C.SavedTensor
    _enable_record_function = staticmethod(_no)
    _get_current_graph_task_keep_graph = _C.ops["_keeps_graph"]
    _push_saved_tensors_default_hooks = _C.ops["_push_saved_hooks"]

    @staticmethod
    def _profiler_enabled():
        import rushlight.autograd.profiler

        return rushlight.autograd.profiler._profiler_enabled()

    _pop_saved_tensors_default_hooks = _C.ops["_pop_saved_hooks"]

    @staticmethod
    def _saved_tensors_hooks_is_enabled():
        return _C.ops["_saved_hooks_message"]() is None

    @staticmethod
    def _saved_tensors_hooks_get_disabled_error_message():
        return _C.ops["_saved_hooks_message"]()

    @staticmethod
    def _saved_tensors_hooks_disable(message):
        _C.ops["_disable_saved_hooks"](message)

    @staticmethod
    def _saved_tensors_hooks_enable():
        _C.ops["_disable_saved_hooks"](None)

    @staticmethod
    def kineto_available():
        return True


class ImperativeEngine:
    """torch._C._EngineBase: what runs backward."""

    @staticmethod
    def queue_callback(callback):
        """Calls callback() when the backward that runs in this thread has ended."""
        _C.ops["_queue_callback"](callback)

    @staticmethod
    def is_checkpoint_valid():
        return rl.autograd._is_checkpoint_valid()


_EngineBase = _ImperativeEngine = ImperativeEngine
is_grad_enabled, _set_grad_enabled = rl.is_grad_enabled, _C.ops["_set_grad_enabled"]
is_inference_mode_enabled = rl.is_inference_mode_enabled
_current_graph_task_id, _current_autograd_node = _C.ops["_backward_run"], _C.ops["_current_node"]


def _current_graph_task_execution_order():
    """The nodes of the backward that runs in this thread, in the order in which they run."""
    if _C.ops["_backward_run"]() >= 0 and rl.autograd.is_multithreading_enabled():
        raise RuntimeError(
            "_current_graph_task_execution_order expects the current backward to be executed with multithreading disabled, "
            "e.g. with torch.autograd.set_multithreading_enabled(False)"
        )
    return _C.ops["_execution_order"]()


def _will_engine_execute_node(node):
    """Whether the backward that runs in this thread comes through a node."""
    if not isinstance(node, _C.Node):
        raise RuntimeError(f"_will_engine_execute_node expects an grad_fn, but got {type(node).__name__}")
    return _C.ops["_will_run_node"](node)


def _set_fwd_grad_enabled(mode):
    from rushlight.autograd import forward_ad

    forward_ad._switch(mode)


def _is_fwd_grad_enabled():
    from rushlight.autograd import forward_ad

    return forward_ad._is_fwd_grad_enabled()


def _is_multithreading_enabled():
    return rl.autograd.is_multithreading_enabled()


def _set_multithreading_enabled(mode):
    rl.autograd.set_multithreading_enabled(mode)


_TorchFunctionMode = _Mode
_LinAlgError = rl.linalg.LinAlgError


TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes milliseconds to import
    from typing import Any


def __getattr__(name: str) -> Any:
    if name in ("DispatchKey", "DispatchKeySet"):
        from rushlight._functorch import _c

        return getattr(_c, name)
    if name == "Tag":
        return rl.Tag
    if name == "_functorch":
        import importlib

        return importlib.import_module("rushlight._C._functorch")
    if name in ("_ConvBackend", "_select_conv_backend"):
        from rushlight.nn import _conv_backend

        return _conv_backend.ConvBackend if name == "_ConvBackend" else _conv_backend.select_conv_backend
    if name == "_functions":
        from rushlight.autograd import _functions

        return _functions
    if name in ("PyTorchFileReader", "PyTorchFileWriter"):
        return getattr(rl, name)
    raise unsupported.no_name("rushlight._C", name, depth=3)
