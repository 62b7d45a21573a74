"""h-transformer-1d, tab-transformer-pytorch: hierarchical attention and a tabular transformer."""

from common import array, labels, once


def run():
    from h_transformer_1d import HTransformer1D
    from tab_transformer_pytorch import FTTransformer

    o = [
        once(
            HTransformer1D(
                num_tokens=20,
                dim=16,
                depth=2,
                causal=False,
                max_seq_len=64,
                heads=2,
                dim_head=8,
                block_size=8,
            ),
            labels(20, 1, 64),
        )
    ]
    o.append(
        once(
            FTTransformer(
                categories=(3, 4),
                num_continuous=2,
                dim=8,
                dim_out=1,
                depth=1,
                heads=2,
                attn_dropout=0.0,
                ff_dropout=0.0,
            ),
            labels(3, 4, 2),
            array(4, 2),
        )
    )
    return o
