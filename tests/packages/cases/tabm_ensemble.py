"""tabm, delu: a tabular ensemble, forward and backward."""

import torch
from common import array, brief, fill, gradients, labels


def run():
    import delu
    import tabm

    torch.manual_seed(0)
    o = {}
    delu.random.seed(3)
    m = tabm.TabM.make(n_num_features=4, cat_cardinalities=[3], d_out=2, k=4, n_blocks=2, d_block=16)
    fill(m)
    m.eval()
    y = m(array(8, 4), labels(3, 8, 1))
    y.pow(2).mean().backward()
    o["tabm"] = [brief(y), gradients(m)]
    return o
