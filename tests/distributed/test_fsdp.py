"""FullyShardedDataParallel in a group of one process."""

import functools

import pytest

import rushlight as rl
import rushlight.distributed as dist
from rushlight.distributed.fsdp import FullyShardedDataParallel as FSDP
from rushlight.distributed.fsdp import ShardingStrategy, StateDictType
from rushlight.distributed.fsdp.wrap import CustomPolicy, ModuleWrapPolicy, size_based_auto_wrap_policy


@pytest.fixture(autouse=True)
def one_process():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def network():
    rl.manual_seed(0)
    return rl.nn.Sequential(rl.nn.Linear(2, 3), rl.nn.Sequential(rl.nn.Linear(3, 1)))


@pytest.mark.parametrize(
    "policy, wrappers",
    [
        (None, 1),
        (ModuleWrapPolicy({rl.nn.Linear}), 3),
        (CustomPolicy(lambda m: isinstance(m, rl.nn.Sequential)), 2),
        (functools.partial(size_based_auto_wrap_policy, min_num_params=5), 2),
    ],
)
def test_names_states_and_gradients_are_those_of_the_module(policy, wrappers):
    plain, x = network(), rl.ones(4, 2)
    with pytest.warns(UserWarning, match="switching to use `NO_SHARD`"):
        wrapped = FSDP(network(), auto_wrap_policy=policy, use_orig_params=True)
    assert len(FSDP.fsdp_modules(wrapped)) == wrappers
    assert [n for n, _ in wrapped.named_parameters()] == [n for n, _ in plain.named_parameters()]
    assert list(wrapped.state_dict()) == list(plain.state_dict())
    wrapped(x).sum().backward()
    plain(x).sum().backward()
    for a, b in zip(wrapped.parameters(), plain.parameters(), strict=True):
        assert a.grad.tolist() == b.grad.tolist()
    other = {k: v + 1 for k, v in plain.state_dict().items()}
    wrapped.load_state_dict(other)
    assert wrapped.module[0].bias.tolist() == other["0.bias"].tolist()


def test_optimizer_states_have_names():
    wrapped = FSDP(network(), sharding_strategy=ShardingStrategy.NO_SHARD)
    optimizer = rl.optim.Adam(wrapped.parameters())
    wrapped(rl.ones(1, 2)).sum().backward()
    optimizer.step()
    with FSDP.state_dict_type(wrapped, StateDictType.SHARDED_STATE_DICT):
        assert FSDP.get_state_dict_type(wrapped).state_dict_type is StateDictType.SHARDED_STATE_DICT
    assert FSDP.get_state_dict_type(wrapped).state_dict_type is StateDictType.FULL_STATE_DICT
    state = FSDP.optim_state_dict(wrapped, optimizer)
    assert set(state["state"]) == {"0.weight", "0.bias", "1.0.weight", "1.0.bias"}
    again = rl.optim.Adam(wrapped.parameters())
    again.load_state_dict(FSDP.optim_state_dict_to_load(wrapped, again, state))
    first = next(iter(wrapped.parameters()))
    assert again.state[first]["exp_avg"].tolist() == optimizer.state[first]["exp_avg"].tolist()
    with pytest.raises(NotImplementedError, match="mixed_precision"):
        FSDP(network(), sharding_strategy=ShardingStrategy.NO_SHARD, mixed_precision=object())
