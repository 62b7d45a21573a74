"""What programs and PyTorch's own tests rely on in optimizers and schedulers beside their arithmetic."""

import pickle

import pytest

import rushlight as rl
from rushlight.optim import lr_scheduler


def parameter():
    p = rl.ones(3, requires_grad=True)
    p.grad = rl.ones(3)
    return p


def test_names_must_be_complete():
    with pytest.raises(ValueError, match="Some param names are missing"):
        rl.optim.SGD([("a", parameter()), parameter()], lr=0.1)


@pytest.mark.parametrize("kind", [rl.optim.Adam, rl.optim.AdamW, rl.optim.SGD, rl.optim.Adagrad])
def test_fused_steps_refuse_what_has_no_memory(kind):
    p = rl.ones(2, device="meta", requires_grad=True)
    optimizer = kind([p], lr=0.1, fused=True)
    p.grad = rl.ones(2, device="meta")
    with pytest.raises(
        RuntimeError, match="`fused=True` requires all the params to be floating point Tensors"
    ):
        optimizer.step()


def test_steps_of_amsgrad_are_differentiable():
    p = rl.rand(3, dtype=rl.float64, requires_grad=True)
    g = rl.rand(3, dtype=rl.float64, requires_grad=True)
    q = p.clone()
    q.grad = g
    optimizer = rl.optim.Adam([q], lr=0.1, amsgrad=True, differentiable=True)
    optimizer.step()
    q.sum().backward()
    assert p.grad is not None and g.grad is not None


def test_tensors_are_grouped_by_device_and_dtype():
    lists = [[rl.ones(1), rl.ones(1, dtype=rl.float64)]]
    groups = rl.optim.Optimizer._group_tensors_by_device_and_dtype(lists, with_indices=True)
    assert {dtype: indices for (_, dtype), (_, indices) in groups.items()} == {
        rl.float32: [0],
        rl.float64: [1],
    }


def test_order_of_calls_is_explained():
    optimizer = rl.optim.SGD([parameter()], lr=0.1)
    scheduler = lr_scheduler.StepLR(optimizer, 3)
    with pytest.warns(UserWarning, match="how-to-adjust-learning-rate"):
        scheduler.step()


def test_cycles_are_saved_without_their_functions():
    optimizer = rl.optim.Adam([parameter()])
    scheduler = lr_scheduler.CyclicLR(optimizer, 1, 5, cycle_momentum=False, mode="triangular2")
    assert scheduler._scale_fn_ref(3) == 0.25
    state = scheduler.state_dict()
    assert "_scale_fn_ref" not in state and pickle.dumps(state)
    other = lr_scheduler.CyclicLR(optimizer, 1, 5, cycle_momentum=False)
    other.load_state_dict(state)
    assert other._scale_fn_ref(3) == 0.25


def test_states_of_one_cycle_from_before_the_type():
    scheduler = lr_scheduler.OneCycleLR(
        rl.optim.SGD([parameter()], lr=0.1, momentum=0.9), 1.0, total_steps=10
    )
    del scheduler._anneal_func_type
    scheduler.load_state_dict({"anneal_func": scheduler._annealing_linear})
    assert scheduler._anneal_func(0.0, 2.0, 0.25) == 0.5


def test_steps_of_nadam_are_differentiable_by_the_product_of_its_momenta():
    def last(product):
        p = rl.tensor([0.5, -0.25], dtype=rl.float64)
        q = p.clone().requires_grad_().clone()
        q.grad = rl.tensor([0.3, 0.7], dtype=rl.float64)
        optimizer = rl.optim.NAdam([q], lr=0.1, differentiable=True)
        state = optimizer.state[q]
        state["step"] = rl.tensor(3.0)
        state["exp_avg"], state["exp_avg_sq"] = rl.full_like(p, 0.1), rl.full_like(p, 0.2)
        state["mu_product"] = product.clone()
        optimizer.step()
        return q

    assert rl.autograd.gradcheck(last, rl.tensor(0.8, dtype=rl.float64, requires_grad=True))
