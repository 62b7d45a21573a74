"""Which PyTorch this answers for, in the words of torch.version. The version number of the project stands here alone: behind `+rushlight.`."""

__version__ = "2.13.0+rushlight.0.1.0"
debug = False
cuda = None
hip = None
rocm = None
xpu = None
git_version = "unknown"
