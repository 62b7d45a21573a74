"""torch-kmeans: k-means of a batch."""

import torch
from common import array, brief


def run():
    from torch_kmeans import KMeans

    x = array(1, 60, 3)
    torch.manual_seed(0)
    r = KMeans(n_clusters=4, seed=1, verbose=False)(x)
    return [brief(r.labels), brief(r.centers), brief(r.inertia)]
