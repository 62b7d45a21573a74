"""Names that rushlight lacks: the error says what it is, that it is not here, and what to use; stand-ins say it on use."""

import importlib
import importlib.util
import subprocess
import sys

import pytest

import rushlight as rl


def test_missing_attribute_names_its_like():
    with pytest.raises(
        AttributeError, match=r"torch\.nn\.functional\.relux: rushlight has no such name.*relu"
    ):
        rl.nn.functional.relux  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'no_such_thing'"):
        rl.no_such_thing  # noqa: B018
    assert not hasattr(rl, "no_such_thing")
    assert not hasattr(rl.linalg, "no_such_thing")


def test_missing_import_says_what_and_what_instead():
    with pytest.raises(ImportError, match="belongs to export to ONNX; use instead: torch.save"):
        from rushlight.onnx import no_such_name  # noqa: F401
    with pytest.raises(ImportError, match=r"Near it: .*relu"):
        from rushlight.nn.functional import relux  # noqa: F401


def test_stand_ins_import_and_refuse():
    from rushlight.distributed.fsdp import FSDPModule, ShardingStrategy, fully_shard
    from rushlight.distributed.fsdp.api import StateDictType

    assert ShardingStrategy.FULL_SHARD.name == "FULL_SHARD"
    assert StateDictType.FULL_STATE_DICT in StateDictType
    assert not isinstance(rl.nn.Linear(1, 1), FSDPModule)
    with pytest.raises(NotImplementedError, match="sharded parameters; use instead"):
        fully_shard(rl.nn.Linear(1, 1))
    with pytest.raises(NotImplementedError, match="ONNX"):
        rl.onnx.export(None, None, "x.onnx")
    with pytest.raises(NotImplementedError, match="extensions"):
        importlib.import_module("rushlight.utils.cpp_extension").load("x", [])


def test_exceptions_that_nothing_raises_can_be_caught():
    from rushlight._dynamo.exc import TorchDynamoException, Unsupported

    with pytest.raises(ZeroDivisionError):
        try:  # noqa: SIM105
            1 / 0  # noqa: B018
        except (TorchDynamoException, Unsupported):
            pass
    assert issubclass(rl._dynamo.exc.UserError, RuntimeError)
    assert issubclass(rl._subclasses.DynamicOutputShapeException, RuntimeError)


def test_every_stand_in_module_loads():
    from rushlight._compat.placeholder_modules import MODULES

    for path in MODULES:
        module = importlib.import_module("rushlight." + path)
        assert not hasattr(module, "no_such_name"), path


def test_quantized_dtypes_are_made_of_floats():
    kind = rl.quint8
    assert isinstance(kind, rl.dtype) and not kind.is_floating_point and kind.itemsize == 1
    assert repr(kind) == "torch.quint8" and {kind: 1}[rl.quint8] == 1
    for make in (lambda: rl.zeros(2, dtype=kind), lambda: rl.ones(2).to(kind)):
        with pytest.raises(NotImplementedError, match="quantize_per_tensor"):
            make()


def _run(code):
    done = subprocess.run([sys.executable, "-m", "rushlight", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")


def test_under_the_name_torch():
    out = _run(
        "import torch, importlib.util, pickle\n"
        "print(torch.__name__ == 'torch', type(torch.ones(1)).__module__, torch.nn.Linear.__module__)\n"
        "print(importlib.util.find_spec('torch.no_such_module') is None)\n"
        "print('Adam' in vars(torch.optim), 'interpolate' in vars(torch.nn.functional))\n"
        "m = pickle.loads(pickle.dumps(torch.nn.Linear(2, 2)))\n"
        "print(type(m) is torch.nn.Linear, torch.torch is torch)\n"
        "try:\n    import torch.no_such_module\n"
        "except ModuleNotFoundError as e:\n    print(e.name, 'rushlight has no such module' in str(e))\n"
    )
    assert out[:5] == [
        "True torch torch.nn.modules.linear",
        "True",
        "True True",
        "True True",
        "torch.no_such_module True",
    ]


def test_private_helpers_of_autograd():
    from rushlight.autograd.functional import (
        _construct_standard_basis_for,
        _grad_postprocess,
        _tuple_postprocess,
    )

    a, b = _construct_standard_basis_for((rl.ones(2), rl.ones(1, dtype=rl.float64)), (2, 1))
    assert a.tolist() == [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]] and b.tolist() == [[0.0], [0.0], [1.0]]
    assert a.dtype == rl.float32 and b.dtype == rl.float64
    x = rl.ones(1, requires_grad=True) * 2
    assert not _grad_postprocess(((x,),), False)[0][0].requires_grad and _grad_postprocess((x,), True)[0] is x
    assert _tuple_postprocess(((x,),), (False, False)) is x and _tuple_postprocess((x,), True) == (x,)


def test_namedtuples_are_taken_apart_by_private_names():
    from collections import namedtuple

    from rushlight.utils._pytree import _namedtuple_flatten, _namedtuple_unflatten

    pair = namedtuple("pair", "a b")
    assert _namedtuple_flatten(pair(1, 2)) == ([1, 2], pair) and _namedtuple_unflatten([3, 4], pair) == pair(
        3, 4
    )


def test_functorch_is_ours_under_the_alias():
    out = _run(
        "import functorch, torch\n"
        "print(functorch.__name__)\n"
        "net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))\n"
        "f, params, buffers = functorch.make_functional_with_buffers(net.eval())\n"
        "x = torch.ones(3, 2)\n"
        "print(torch.equal(f(params, buffers, x), net(x)), len(params), len(buffers))\n"
        "g, params = functorch.make_functional(torch.nn.Linear(2, 3))\n"
        "rows = functorch.vmap(functorch.grad(lambda p, x: g(p, x).sum()), (None, 0))(params, x)\n"
        "print(tuple(rows[0].shape))\n"
        "h, params, buffers = functorch.combine_state_for_ensemble([torch.nn.Linear(2, 3) for _ in range(4)])\n"
        "print(tuple(functorch.vmap(h, (0, 0, None))(params, buffers, x).shape))\n"
    )
    assert out[:4] == ["rushlight.functorch", "True 4 3", "(3, 3, 2)", "(4, 3, 3)"]


def test_classes_of_named_tuples():
    import rushlight.return_types as kinds

    assert isinstance(rl.ones(2, 2).max(0), kinds.max) and not isinstance(rl.ones(2, 2).min(0), kinds.max)
    for name in ("topk", "svd", "linalg_eigh", "linalg_slogdet", "aminmax"):
        assert issubclass(getattr(kinds, name), tuple), name
    with pytest.raises(AttributeError, match="rushlight has no such name"):
        kinds.no_such_name  # noqa: B018


def test_classes_of_operators():
    from rushlight import _ops

    assert isinstance(rl.ops.aten, _ops._OpNamespace) and isinstance(rl.ops.aten.mm, _ops.OpOverloadPacket)
    with pytest.raises(AttributeError, match="rushlight has no such name"):
        _ops.no_such_name  # noqa: B018


def test_batched_tensors_are_known():
    from rushlight._C._functorch import get_unwrapped, is_batchedtensor

    seen = []
    rl.vmap(lambda x: seen.append((is_batchedtensor(x), get_unwrapped(x).shape)) or x)(rl.ones(3, 2))
    assert seen == [(True, (3, 2))] and not is_batchedtensor(rl.ones(1))


def test_tensors_of_a_module_are_swapped():
    from rushlight.nn.utils._named_member_accessor import swap_tensor

    layer = rl.nn.Linear(2, 2)
    weight, other = layer.weight, rl.zeros(2, 2)
    assert swap_tensor(layer, "weight", other) is weight and layer.weight is other
    assert swap_tensor(layer, "weight", weight) is other and isinstance(layer.weight, rl.nn.Parameter)
    with pytest.raises(AttributeError, match="has no attribute 'scale'"):
        swap_tensor(layer, "scale", other)
    with pytest.raises(KeyError):
        swap_tensor(layer, "a.b", other)


def test_pythons_types_stand_for_dtypes_in_limits():
    assert rl.finfo(float) == rl.finfo(rl.float64) and rl.iinfo(int) == rl.iinfo(rl.int64)
    with pytest.raises(TypeError):
        rl.finfo(str)


def test_private_names_of_the_core():
    assert rl._C._log_api_usage_once("x") is None
    assert rl._C._nn.gelu is rl.nn.functional.gelu
    assert rl._C._nn._parse_to("cpu", rl.float64)[:2] == (rl.device("cpu"), rl.float64)
    with pytest.raises(AttributeError, match="rushlight has no such name"):
        rl._C.no_such_name  # noqa: B018
