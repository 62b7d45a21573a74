"""diffusers: a small U-Net, DDPM, DDIM and DPM-Solver steps of the samplers."""

import torch
from common import array, brief, once
from diffusers import DDIMScheduler, DDPMScheduler, DPMSolverMultistepScheduler, UNet2DModel


def run():
    torch.manual_seed(0)
    net = UNet2DModel(
        sample_size=16,
        in_channels=1,
        out_channels=1,
        layers_per_block=1,
        block_out_channels=(8, 16),
        norm_num_groups=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )
    out = {
        "unet": once(net, array(2, 1, 16, 16), torch.tensor([3, 7]), loss=lambda o: o.sample.pow(2).mean())
    }
    for cls in (DDPMScheduler, DDIMScheduler, DPMSolverMultistepScheduler):
        s = cls(num_train_timesteps=100)
        s.set_timesteps(5)
        x = array(1, 1, 8, 8, seed=2)
        for t in s.timesteps:
            x = s.step(torch.tanh(x), t, x).prev_sample
        noisy = s.add_noise(array(1, 1, 8, 8), array(1, 1, 8, 8, seed=5), torch.tensor([20]))
        out[cls.__name__] = [brief(x), brief(noisy)]
    return out
