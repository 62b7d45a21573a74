"""torch.sparse.FloatTensor(indices, values, size) and its kin."""

from __future__ import annotations

from rushlight.sparse._coo import SparseTensor, sparse_coo_tensor


class _Typed(type):
    dtype_name: str

    def __call__(cls, *args):
        import rushlight as rl

        size = args if args and all(isinstance(n, int) for n in args) else None
        if not args or size:
            return sparse_coo_tensor(size or (0,), dtype=getattr(rl, cls.dtype_name))
        return sparse_coo_tensor(*args, dtype=getattr(rl, cls.dtype_name))

    def __instancecheck__(cls, obj):
        return isinstance(obj, SparseTensor) and str(obj.dtype).endswith("." + cls.dtype_name)


def _make(name, dtype_name):
    return _Typed(name, (), {"__module__": "rushlight.sparse", "dtype_name": dtype_name})


FloatTensor = _make("FloatTensor", "float32")
DoubleTensor = _make("DoubleTensor", "float64")
LongTensor = _make("LongTensor", "int64")
IntTensor = _make("IntTensor", "int32")
