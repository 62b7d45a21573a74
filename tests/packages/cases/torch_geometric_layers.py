"""torch-geometric: GCN, GAT, SAGE, GIN, message passing and pooling on a small graph, three training steps."""

import torch
import torch_geometric.nn as gnn
from common import array, brief, fill, gradients, labels
from torch_geometric.data import Batch, Data


def run():
    edges = torch.stack([labels(10, 30, seed=1), labels(10, 30, seed=2)])
    x, y = array(10, 6), labels(3, 10, seed=4)
    out = {}
    for name, make in dict(
        GCN=gnn.GCNConv,
        SAGE=gnn.SAGEConv,
        GAT=gnn.GATConv,
        GraphConv=gnn.GraphConv,
        TAG=gnn.TAGConv,
        Transformer=gnn.TransformerConv,
        Cheb=lambda i, o: gnn.ChebConv(i, o, K=3),
    ).items():
        net = fill(make(6, 3))
        loss = torch.nn.functional.cross_entropy(net(x, edges), y)
        loss.backward()
        out[name] = [loss.item(), gradients(net)]
    batch = Batch.from_data_list([Data(x=x, edge_index=edges), Data(x=x * 2, edge_index=edges.flip(0))])
    out["pool"] = [
        brief(gnn.global_mean_pool(batch.x, batch.batch)),
        brief(gnn.global_max_pool(batch.x, batch.batch)),
    ]
    model = fill(gnn.GCN(6, 16, 2, 3))
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(3):
        opt.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(batch.x, batch.edge_index), y.repeat(2))
        loss.backward()
        opt.step()
        losses.append(loss.item())
    out["train"] = losses
    return out
