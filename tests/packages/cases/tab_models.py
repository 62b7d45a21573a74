"""pytorch-tabnet, tab-transformer-pytorch, rtdl-num-embeddings, deepctr-torch: tabular networks, forward and backward."""

import torch
from common import array, labels, once
from pytorch_tabnet.tab_network import TabNet
from rtdl_num_embeddings import PeriodicEmbeddings, PiecewiseLinearEmbeddings, compute_bins
from tab_transformer_pytorch import FTTransformer, TabTransformer


def run():
    torch.manual_seed(0)
    cat, num = labels(5, 8, 3), array(8, 4)
    tab = TabTransformer(categories=(5, 5, 5), num_continuous=4, dim=16, dim_out=1, depth=2, heads=4, dim_head=4)
    ft = FTTransformer(categories=(5, 5, 5), num_continuous=4, dim=16, dim_out=1, depth=2, heads=4, dim_head=4)
    net = TabNet(6, 2, n_d=4, n_a=4, n_steps=2, group_attention_matrix=torch.eye(6), virtual_batch_size=4)
    return {
        "tab": once(tab, cat, num), "ft": once(ft, cat, num),
        "tabnet": once(net, array(8, 6), loss=lambda o: o[0].pow(2).mean() + o[1]),
        "periodic": once(PeriodicEmbeddings(4, 8, lite=False), num),
        "ple": once(PiecewiseLinearEmbeddings(compute_bins(array(50, 4)), 6, activation=False, version="B"), num),
    }
