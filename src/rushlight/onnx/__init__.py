"""torch.onnx: rushlight writes no ONNX files. The questions and markers that models ask at import or in forward are here."""

import enum

import rushlight as rl
from rushlight._core.unsupported import explain as explain, unsupported_attribute as _unsupported_attribute

producer_name = "pytorch"
producer_version = rl.__version__


def is_in_onnx_export():
    """Whether a model is being exported: never."""
    return False


def is_onnxrt_backend_supported():
    return False


class OperatorExportTypes(enum.Enum):
    """How PyTorch's exporter treats operators that ONNX lacks."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class TrainingMode(enum.Enum):
    """In which mode PyTorch's exporter puts the model."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class TensorProtoDataType(enum.IntEnum):
    """The numbers of ONNX's element types."""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16


class OnnxExporterError(RuntimeError):
    """A failed export."""


class CheckerError(OnnxExporterError):
    """A file that is not valid ONNX."""


def _refuse(name):
    def refuse(*args, **kwargs):
        raise NotImplementedError(explain(f"onnx.{name}"))

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


export, export_to_pretty_string, dynamo_export = map(
    _refuse, ("export", "export_to_pretty_string", "dynamo_export")
)
ExportOptions = ONNXProgram = None


def register_custom_op_symbolic(symbolic_name, symbolic_fn, opset_version, custom_opsets=None):
    """Rules for an exporter that is not here: packages give them at import, and nobody asks for them."""


def unregister_custom_op_symbolic(symbolic_name, opset_version):
    """See register_custom_op_symbolic."""


def select_model_mode_for_export(model, mode):
    """A block in which the model would be exported."""
    raise NotImplementedError(explain("onnx.select_model_mode_for_export"))


__getattr__ = _unsupported_attribute(__name__)
