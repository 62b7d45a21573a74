"""pytorch-frame: a data frame through an FT-Transformer, trained for two epochs."""

import numpy as np
import pandas as pd
import torch
from torch_frame import stype
from torch_frame.data import DataLoader, Dataset
from torch_frame.nn import FTTransformer


def run():
    torch.manual_seed(0)
    g = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": g.random(40), "b": g.random(40), "c": g.choice(["x", "y", "z"], 40), "y": g.integers(0, 2, 40)}
    )
    kinds = {"a": stype.numerical, "b": stype.numerical, "c": stype.categorical, "y": stype.categorical}
    data = Dataset(frame, kinds, target_col="y")
    data.materialize()
    model = FTTransformer(
        channels=16,
        out_channels=2,
        num_layers=1,
        col_stats=data.col_stats,
        col_names_dict=data.tensor_frame.col_names_dict,
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(2):
        for batch in DataLoader(data.tensor_frame, batch_size=16, shuffle=True):
            loss = torch.nn.functional.cross_entropy(model(batch), batch.y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses
