"""tensorly: CP, Tucker and tensor-train decompositions with the PyTorch backend."""

import tensorly as tl
import torch
from common import array, brief
from tensorly.decomposition import parafac, tensor_train, tucker


def run():
    tl.set_backend("pytorch")
    x = array(5, 6, 7).double()
    cp = parafac(x, rank=3, n_iter_max=20, init="svd")
    core, factors = tucker(x, rank=[3, 3, 3], n_iter_max=10, init="svd")
    tt = tensor_train(x, rank=[1, 3, 3, 1])
    error = tl.norm(tl.cp_to_tensor(cp) - x)
    rebuilt = tl.tucker_to_tensor((core, factors))
    return {
        "cp": brief(tl.cp_to_tensor(cp)),
        "error": error.item(),
        "tucker": brief(rebuilt),
        "tt": brief(tl.tt_to_tensor(tt)),
        "khatri": brief(tl.tenalg.khatri_rao([x[0], x[1]])) if isinstance(x, torch.Tensor) else None,
    }
