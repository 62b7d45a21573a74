"""Images of different sizes in one batch."""


class ImageList:
    """A padded batch (N, C, H, W), and the (height, width) of each image in it."""

    def __init__(self, tensors, image_sizes):
        self.tensors = tensors
        self.image_sizes = image_sizes

    def to(self, device):
        return ImageList(self.tensors.to(device), self.image_sizes)
