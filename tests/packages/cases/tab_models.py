"""pytorch-tabnet, rtdl-num-embeddings, rtdl-revisiting-models: tabular networks, forward and backward."""

import torch
from common import array, labels, once
from pytorch_tabnet.tab_network import TabNet
from rtdl_num_embeddings import PeriodicEmbeddings, PiecewiseLinearEmbeddings, compute_bins
from rtdl_revisiting_models import MLP, FTTransformer, ResNet


def run():
    torch.manual_seed(0)
    cat, num = labels(5, 8, 3), array(8, 4)
    common = {"n_blocks": 2, "dropout": 0.0, "d_out": 1, "d_in": 4}
    ft = FTTransformer(
        n_cont_features=4, cat_cardinalities=[5, 5, 5], d_out=1, n_blocks=2, d_block=16, attention_n_heads=4,
        attention_dropout=0.0, ffn_d_hidden=24, ffn_d_hidden_multiplier=None, ffn_dropout=0.0, residual_dropout=0.0,
    )  # fmt: skip
    resnet = ResNet(
        d_in=4,
        d_out=1,
        n_blocks=2,
        d_block=8,
        d_hidden=16,
        d_hidden_multiplier=None,
        dropout1=0.0,
        dropout2=0.0,
    )
    net = TabNet(6, 2, n_d=4, n_a=4, n_steps=2, group_attention_matrix=torch.eye(6), virtual_batch_size=4)
    return {
        "ft": once(ft, num, cat),
        "mlp": once(MLP(d_block=8, **common), num),
        "resnet": once(resnet, num),
        "tabnet": once(net, array(8, 6), loss=lambda o: o[0].pow(2).mean() + o[1]),
        "periodic": once(PeriodicEmbeddings(4, 8, lite=False), num),
        "ple": once(
            PiecewiseLinearEmbeddings(compute_bins(array(50, 4)), 6, activation=False, version="B"), num
        ),
    }
