"""kornia: geometry, colour, filters, losses, features and augmentation with given parameters."""

import kornia as K
import torch
from common import array, brief


def run():
    img = array(2, 3, 24, 24, low=0.0).requires_grad_()
    out = {
        "hsv": brief(K.color.rgb_to_hsv(img)),
        "lab": brief(K.color.rgb_to_lab(img)),
        "blur": brief(K.filters.gaussian_blur2d(img, (5, 5), (1.5, 1.5))),
        "sobel": brief(K.filters.sobel(img)),
        "canny": brief(K.filters.canny(img)[0]),
        "rotate": brief(K.geometry.rotate(img, torch.tensor([10.0, 20.0]))),
        "warp": brief(K.geometry.warp_perspective(img, torch.eye(3)[None].repeat(2, 1, 1) + 0.001, (24, 24))),
        "ssim": K.losses.ssim_loss(img, img.flip(-1), 5).item(),
        "harris": brief(K.feature.harris_response(img[:, :1])),
        "morph": brief(K.morphology.dilation(img, torch.ones(3, 3))),
    }
    torch.manual_seed(0)
    out["aug"] = brief(K.augmentation.RandomHorizontalFlip(p=1.0)(img))
    loss = K.losses.total_variation(img).mean()
    loss.backward()
    out["tv"] = [loss.item(), brief(img.grad)]
    return out
