"""peft: LoRA and IA3 adapters on a small network, trained and merged."""

import torch
from common import array, brief, fill
from peft import IA3Config, LoraConfig, get_peft_model


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(6, 12), torch.nn.Linear(12, 3)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


def run():
    out = {}
    for name, config in dict(
        lora=LoraConfig(r=4, target_modules=["first", "second"]),
        dora=LoraConfig(r=4, target_modules=["first"], use_dora=True),
        ia3=IA3Config(target_modules=["first"], feedforward_modules=[]),
    ).items():
        model = get_peft_model(fill(Net()), config)
        fill(model, seed=3)
        opt = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.01)
        x, y, losses = array(16, 6), array(16, 3, seed=2), []
        for _ in range(3):
            opt.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        before = model(x)
        after = model.merge_and_unload()(x)
        out[name] = [losses, brief(before), brief(after)]
    return out
