"""deepctr-torch: DeepFM, xDeepFM, DCN and AutoInt trained for two epochs."""

import numpy as np
from common import brief
from deepctr_torch.inputs import DenseFeat, SparseFeat
from deepctr_torch.models import DCN, AutoInt, DeepFM, xDeepFM


def run():
    g = np.random.default_rng(0)
    cols = [SparseFeat("a", 8, 4), SparseFeat("b", 5, 4), DenseFeat("c", 1)]
    data = {"a": g.integers(0, 8, 64), "b": g.integers(0, 5, 64), "c": g.random(64).astype("f")}
    y = g.integers(0, 2, 64)
    o = {}
    for k in (DeepFM, xDeepFM, DCN, AutoInt):
        m = k(cols, cols, task="binary", device="cpu", seed=3)
        m.compile("adam", "binary_crossentropy", metrics=["auc"])
        h = m.fit(data, y, batch_size=16, epochs=2, verbose=0, shuffle=False)
        o[k.__name__] = [h.history["loss"], brief(m.predict(data, 16))]
    return o
