"""lightning: a Trainer with checkpoints, early stopping and its model summary, and Fabric."""

import lightning
import torch
from common import array, brief, fill
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.save_hyperparameters()
        self.net = fill(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)))
        self.losses = []

    def training_step(self, batch, index):
        loss = mse_loss(self.net(batch[0]), batch[1])
        self.log("loss", loss, prog_bar=True)
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch, index):
        self.log("valid", mse_loss(self.net(batch[0]), batch[1]))

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.02)
        return {
            "optimizer": optimizer,
            "lr_scheduler": torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10),
        }


def run():
    lightning.seed_everything(3)
    data = TensorDataset(array(40, 4), array(40, 1, seed=1))
    best = ModelCheckpoint(dirpath="checkpoints", monitor="valid", save_last=True)
    trainer = lightning.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        callbacks=[best, EarlyStopping("valid")],
        gradient_clip_val=0.5,
    )
    model = Model()
    trainer.fit(model, DataLoader(data, 8, shuffle=True), DataLoader(data, 8))
    loaded = Model.load_from_checkpoint("checkpoints/last.ckpt")
    valid = trainer.validate(loaded, DataLoader(data, 8), verbose=False)
    fabric = lightning.Fabric(accelerator="cpu", devices=1)
    fabric.launch()
    layer = fill(torch.nn.Linear(4, 1))
    layer, optimizer = fabric.setup(layer, torch.optim.SGD(layer.parameters(), lr=0.1))
    loss = layer(array(8, 4)).pow(2).mean()
    fabric.backward(loss)
    optimizer.step()
    return [model.losses, valid[0], loss.item(), brief(layer(array(8, 4)))]
