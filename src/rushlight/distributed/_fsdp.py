"""FullyShardedDataParallel where nothing is to be sharded: in a group of one process, or by NO_SHARD.

A wrapper keeps the parameters of its module whole, and averages their gradients over the group, as PyTorch does with
ShardingStrategy.NO_SHARD, to which it goes over by itself in a group of one.
"""

import contextlib
import dataclasses
import enum
import warnings

import rushlight as rl
from rushlight import distributed as dist

_PREFIX = "_fsdp_wrapped_module."


class ShardingStrategy(enum.Enum):
    """What is cut up among the processes."""

    FULL_SHARD = enum.auto()
    SHARD_GRAD_OP = enum.auto()
    NO_SHARD = enum.auto()
    HYBRID_SHARD = enum.auto()
    _HYBRID_SHARD_ZERO2 = enum.auto()


class StateDictType(enum.Enum):
    """How state_dict() gives sharded parameters; whole ones are given whole."""

    FULL_STATE_DICT = enum.auto()
    LOCAL_STATE_DICT = enum.auto()
    SHARDED_STATE_DICT = enum.auto()


@dataclasses.dataclass
class StateDictConfig:
    offload_to_cpu: bool = False


@dataclasses.dataclass
class FullStateDictConfig(StateDictConfig):
    rank0_only: bool = False


@dataclasses.dataclass
class ShardedStateDictConfig(StateDictConfig):
    _use_dtensor: bool = False


@dataclasses.dataclass
class OptimStateDictConfig:
    offload_to_cpu: bool = True


@dataclasses.dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    rank0_only: bool = False


@dataclasses.dataclass
class StateDictSettings:
    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig


class FullyShardedDataParallel(rl.nn.Module):
    """Wraps a module whose parameters stay whole; see above."""

    def __init__(
        self,
        module,
        process_group=None,
        sharding_strategy=None,
        cpu_offload=None,
        auto_wrap_policy=None,
        backward_prefetch=None,
        mixed_precision=None,
        ignored_modules=None,
        param_init_fn=None,
        device_id=None,
        sync_module_states=False,
        forward_prefetch=False,
        limit_all_gathers=True,
        use_orig_params=False,
        ignored_states=None,
        device_mesh=None,
    ):
        super().__init__()
        size = dist.get_world_size(process_group)
        strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        if size == 1 and strategy is not ShardingStrategy.NO_SHARD:
            warnings.warn(
                f"FSDP is switching to use `NO_SHARD` instead of {strategy} since the world size is 1.",
                stacklevel=2,
            )
        elif strategy is not ShardingStrategy.NO_SHARD:
            raise NotImplementedError(
                f"FullyShardedDataParallel: parameters are not cut up among {size} processes; write "
                "sharding_strategy=ShardingStrategy.NO_SHARD, or nn.parallel.DistributedDataParallel(module)"
            )
        if mixed_precision is not None:
            raise NotImplementedError(
                "FullyShardedDataParallel: mixed_precision is not supported; write torch.autocast('cpu') around forward"
            )
        self.process_group, self.sharding_strategy = process_group, ShardingStrategy.NO_SHARD
        self._use_orig_params, self._synchronized, self._reducer = use_orig_params, True, None
        ignored = set(ignored_modules or ())
        if auto_wrap_policy is not None:
            _wrap_children(module, auto_wrap_policy, ignored, process_group, use_orig_params)
        self._fsdp_wrapped_module = module
        self._settings = StateDictSettings(
            StateDictType.FULL_STATE_DICT, FullStateDictConfig(), FullOptimStateDictConfig()
        )
        self._register_state_dict_hook(_without_prefix)
        self.register_load_state_dict_pre_hook(_with_prefix)
        if size > 1:
            self._join_group(sync_module_states)

    def _join_group(self, sync_module_states):
        from rushlight.nn.parallel import _reducer

        module = self._fsdp_wrapped_module
        if sync_module_states:
            _reducer.sync_states([*module.parameters(), *module.buffers()], self.process_group)
        own = [p for p in module.parameters() if p.requires_grad]
        inner = {p for m in self.fsdp_modules(module) for p in m.parameters()}
        if any(p not in inner for p in own):
            self._reducer = _reducer.Reducer(module, self.process_group, find_unused=False)

    @property
    def module(self):
        """The module that is wrapped."""
        return self._fsdp_wrapped_module

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "_fsdp_wrapped_module":
                raise
            return getattr(self._fsdp_wrapped_module, name)

    def __getitem__(self, key):
        return self._fsdp_wrapped_module[key]

    def forward(self, *args, **kwargs):
        outputs = self._fsdp_wrapped_module(*args, **kwargs)
        if self._reducer is not None and rl.is_grad_enabled():
            if self._synchronized:
                self._reducer.prepare_for_backward(outputs)
            else:
                self._reducer.stop()
        return outputs

    def named_parameters(self, *args, **kwargs):
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_PREFIX, ""), parameter

    def named_buffers(self, *args, **kwargs):
        for name, buffer in super().named_buffers(*args, **kwargs):
            yield name.replace(_PREFIX, ""), buffer

    @staticmethod
    def fsdp_modules(module, root_only=False):
        """The wrappers in a module; with root_only those that are not in another."""
        found = [m for m in module.modules() if isinstance(m, FullyShardedDataParallel)]
        inner = {id(m) for f in found for m in f.modules() if m is not f}
        return [m for m in found if not (root_only and id(m) in inner)]

    def check_is_root(self):
        return True

    @contextlib.contextmanager
    def no_sync(self):
        """A block in which gradients only accumulate in this process."""
        wrappers = self.fsdp_modules(self)
        before = [w._synchronized for w in wrappers]
        for w in wrappers:
            w._synchronized = False
        try:
            yield
        finally:
            for w, value in zip(wrappers, before, strict=True):
                w._synchronized = value

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(
        module, recurse=True, writeback=True, rank0_only=False, offload_to_cpu=False, with_grads=False
    ):
        """A block in which the parameters are whole, as they always are here."""
        yield

    def clip_grad_norm_(self, max_norm, norm_type=2.0):
        """Scales the gradients so that their norm is at most max_norm; gives the norm there was."""
        return rl.nn.utils.clip_grad_norm_(self.parameters(), max_norm, norm_type)

    @staticmethod
    def set_state_dict_type(module, state_dict_type, state_dict_config=None, optim_state_dict_config=None):
        """Chooses what state_dict() gives; gives the settings there were."""
        wrappers = FullyShardedDataParallel.fsdp_modules(module)
        before = wrappers[0]._settings if wrappers else None
        for w in wrappers:
            w._settings = StateDictSettings(
                state_dict_type,
                state_dict_config or FullStateDictConfig(),
                optim_state_dict_config or FullOptimStateDictConfig(),
            )
        return before

    @staticmethod
    def get_state_dict_type(module):
        """What state_dict() gives."""
        wrappers = FullyShardedDataParallel.fsdp_modules(module)
        if not wrappers:
            raise AssertionError("Expected at least one FSDP module")
        return wrappers[0]._settings

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(module, state_dict_type, state_dict_config=None, optim_state_dict_config=None):
        """A block in which state_dict() gives something else."""
        before = FullyShardedDataParallel.set_state_dict_type(
            module, state_dict_type, state_dict_config, optim_state_dict_config
        )
        try:
            yield
        finally:
            for w in FullyShardedDataParallel.fsdp_modules(module):
                w._settings = before

    @staticmethod
    def optim_state_dict(model, optim, optim_state_dict=None, group=None):
        """An optimizer's state with names of parameters for keys."""
        from rushlight.distributed._state_dict import get_optimizer_state_dict

        return get_optimizer_state_dict(model, optim)

    full_optim_state_dict = optim_state_dict

    @staticmethod
    def optim_state_dict_to_load(
        model, optim, optim_state_dict, is_named_optimizer=False, load_directly=False, group=None
    ):
        """A state of optim_state_dict() with the indices that the optimizer's load_state_dict takes."""
        names = {p: n for n, p in model.named_parameters()}
        order = [names[p] for g in optim.param_groups for p in g["params"]]
        indices = {name: i for i, name in enumerate(order)}
        state = {indices[name]: value for name, value in optim_state_dict["state"].items()}
        groups = []
        for own, given in zip(optim.param_groups, optim_state_dict["param_groups"], strict=True):
            groups.append({**given, "params": [indices[names[p]] for p in own["params"]]})
        made = {"state": state, "param_groups": groups}
        if load_directly:
            optim.load_state_dict(made)
        return made


def _without_prefix(module, state, prefix, local_metadata):
    """state_dict() has the names of the module that is wrapped."""
    for name in list(state):
        if name.startswith(prefix + _PREFIX):
            state[prefix + name[len(prefix + _PREFIX) :]] = state.pop(name)


def _with_prefix(module, state, prefix, *rest):
    """load_state_dict() takes the names of the module that is wrapped."""
    for name in list(state):
        if name.startswith(prefix) and not name.startswith(prefix + _PREFIX):
            state[prefix + _PREFIX + name[len(prefix) :]] = state.pop(name)


def _wrap_children(module, policy, ignored, process_group, use_orig_params):
    """Wraps those modules inside of another that a policy chooses, the innermost first."""
    from rushlight.distributed._fsdp_wrap import chosen

    picked = chosen(module, policy, ignored)
    for parent in list(module.modules()):
        for name, child in list(parent.named_children()):
            if child in picked and not isinstance(child, FullyShardedDataParallel):
                setattr(
                    parent,
                    name,
                    FullyShardedDataParallel(
                        child,
                        process_group,
                        ShardingStrategy.NO_SHARD,
                        use_orig_params=use_orig_params,
                    ),
                )
