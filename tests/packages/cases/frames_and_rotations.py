"""invariant-point-attention, se3-transformer-pytorch: equivariant attention, forward and backward."""

import torch
from common import array, brief, fill, gradients, once
from invariant_point_attention import InvariantPointAttention
from se3_transformer_pytorch import SE3Transformer


def run():
    m = InvariantPointAttention(
        dim=16,
        heads=2,
        scalar_key_dim=4,
        scalar_value_dim=4,
        point_key_dim=2,
        point_value_dim=2,
        pairwise_repr_dim=16,
    )
    o = [
        once(
            m,
            array(1, 8, 16),
            pairwise_repr=array(1, 8, 8, 16, seed=2),
            rotations=torch.eye(3).expand(1, 8, 3, 3),
            translations=array(1, 8, 3, seed=5),
            mask=torch.ones(1, 8).bool(),
        )
    ]
    torch.manual_seed(0)
    s = SE3Transformer(dim=8, heads=2, dim_head=4, depth=1, num_degrees=2, valid_radius=10, num_neighbors=4)
    fill(s)
    y = s(array(1, 8, 8), array(1, 8, 3, seed=3), torch.ones(1, 8).bool(), return_type=0)
    y.pow(2).mean().backward()
    return o + [brief(y), gradients(s)]
