"""pytorch-ignite: a supervised trainer with metrics, handlers and a learning-rate schedule."""

import torch
from common import array, fill, labels
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import EarlyStopping, PiecewiseLinear
from ignite.metrics import Accuracy, ConfusionMatrix, Loss


def run():
    net = fill(torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3)))
    data = torch.utils.data.TensorDataset(array(48, 6), labels(3, 48))
    loader = torch.utils.data.DataLoader(data, batch_size=16)
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    trainer = create_supervised_trainer(net, opt, torch.nn.CrossEntropyLoss())
    metrics = {"acc": Accuracy(), "loss": Loss(torch.nn.CrossEntropyLoss()), "cm": ConfusionMatrix(3)}
    evaluator = create_supervised_evaluator(net, metrics=metrics)
    seen = []
    trainer.add_event_handler(Events.ITERATION_STARTED, PiecewiseLinear(opt, "lr", [(0, 0.1), (9, 0.01)]))
    evaluator.add_event_handler(
        Events.COMPLETED, EarlyStopping(5, lambda e: -e.state.metrics["loss"], trainer)
    )

    @trainer.on(Events.EPOCH_COMPLETED)
    def evaluate(engine):
        m = evaluator.run(loader).metrics
        seen.append([m["acc"], m["loss"], m["cm"].tolist()])

    trainer.run(loader, max_epochs=3)
    return seen
