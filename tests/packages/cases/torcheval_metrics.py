"""torcheval: eight metrics by batches, and two functions."""

import torcheval.metrics.functional as F
from common import array, brief, labels
from torcheval.metrics import (
    BinaryAUPRC,
    BinaryAUROC,
    MeanSquaredError,
    MulticlassAccuracy,
    MulticlassConfusionMatrix,
    MulticlassF1Score,
    Perplexity,
    R2Score,
)


def run():
    o = {}
    for n, m, a, b in [
        ("acc", MulticlassAccuracy(), array(20, 4), labels(4, 20)),
        ("auroc", BinaryAUROC(), array(20), labels(2, 20)),
        ("f1", MulticlassF1Score(num_classes=4, average="macro"), array(20, 4), labels(4, 20)),
        ("mse", MeanSquaredError(), array(20), array(20, seed=1)),
        ("r2", R2Score(), array(20), array(20, seed=1)),
        ("ppl", Perplexity(), array(2, 5, 4), labels(4, 2, 5)),
        ("ap", BinaryAUPRC(), array(20), labels(2, 20)),
        ("cm", MulticlassConfusionMatrix(4), array(20, 4), labels(4, 20)),
    ]:
        m.update(a, b)
        m.update(a, b)
        o[n] = brief(m.compute())
    o["hit"] = brief(F.hit_rate(array(5, 4), labels(4, 5), k=2))
    o["rr"] = brief(F.reciprocal_rank(array(5, 4), labels(4, 5)))
    return o
