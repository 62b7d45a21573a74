"""accelerate: an Accelerator's training loop with gradient accumulation and clipping, and a saved state."""

import torch
from accelerate import Accelerator
from common import array, fill


def run():
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    net = fill(torch.nn.Linear(5, 2))
    opt = torch.optim.AdamW(net.parameters(), lr=0.05)
    data = torch.utils.data.TensorDataset(array(32, 5), array(32, 2, seed=3))
    loader = torch.utils.data.DataLoader(data, batch_size=8)
    net, opt, loader = accelerator.prepare(net, opt, loader)
    losses = []
    for _ in range(3):
        for x, y in loader:
            with accelerator.accumulate(net):
                loss = ((net(x) - y) ** 2).mean()
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(net.parameters(), 1.0)
                opt.step()
                opt.zero_grad()
                losses.append(accelerator.gather(loss.detach()).item())
    accelerator.save_state("state")
    accelerator.load_state("state")
    return losses
