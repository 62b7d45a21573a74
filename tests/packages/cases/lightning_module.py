"""pytorch-lightning, lightning-utilities, torchmetrics: a LightningModule trained for two epochs with logging and a scheduler."""

import logging

import pytorch_lightning as pl
import torch
import torchmetrics
from common import array, fill, labels


class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.save_hyperparameters()
        self.net = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
        self.accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=3)

    def training_step(self, batch, index):
        x, y = batch
        logits = self.net(x)
        loss = torch.nn.functional.cross_entropy(logits, y)
        self.log("loss", loss, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        self.accuracy(self.net(x), y)
        self.log("acc", self.accuracy, on_epoch=True)

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=0.01)
        return [opt], [torch.optim.lr_scheduler.CosineAnnealingLR(opt, 10)]


def run():
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    pl.seed_everything(1)
    data = torch.utils.data.TensorDataset(array(64, 6), labels(3, 64))
    loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
    model = fill(Net())
    trainer = pl.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        gradient_clip_val=0.5,
        enable_model_summary=False,
    )
    trainer.fit(model, loader, torch.utils.data.DataLoader(data, batch_size=32))
    metrics = {k: v.item() for k, v in trainer.callback_metrics.items()}
    return {
        "metrics": metrics,
        "steps": trainer.global_step,
        "saved": sorted(torch.load(trainer.checkpoint_callback.best_model_path, weights_only=False)),
    }
