"""torch.utils.tensorboard: event files that TensorBoard reads (extra `tensorboard`)."""

try:
    import tensorboard  # noqa: F401
except ImportError:
    raise ImportError(
        "torch.utils.tensorboard writes with the tensorboard package: pip install tensorboard"
    ) from None

from tensorboard.summary.writer.record_writer import RecordWriter

from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
