"""Random images, for programs that are tried without data."""

import rushlight as rl

from ..transforms._to_from import to_pil_image
from .vision import VisionDataset

__all__ = ["FakeData"]


class FakeData(VisionDataset):
    """Random images of random classes; each is the same whenever it is asked for."""

    def __init__(
        self,
        size=1000,
        image_size=(3, 224, 224),
        num_classes=10,
        transform=None,
        target_transform=None,
        random_offset=0,
    ):
        super().__init__(transform=transform, target_transform=target_transform)
        self.size, self.image_size = size, image_size
        self.num_classes, self.random_offset = num_classes, random_offset

    def __getitem__(self, index):
        if index >= len(self):
            raise IndexError(f"{type(self).__name__} index out of range")
        state = rl.get_rng_state()
        rl.manual_seed(index + self.random_offset)
        img = rl.randn(*self.image_size)
        target = rl.randint(0, self.num_classes, size=(1,), dtype=rl.long)[0]
        rl.set_rng_state(state)
        img, target = self._transformed(to_pil_image(img), target)
        return img, target.item() if isinstance(target, rl.Tensor) else target

    def __len__(self):
        return self.size
