"""Tensors for hostile calls: small ones of all kinds, and ones that end at an inaccessible page."""

import ctypes
import mmap

from .values import HUGE

PROT_NONE = 0
_kept = []  # mappings are never unmapped: a tensor may outlive the call


def guarded(rl, np, shape, dtype):
    """A tensor filled with ones whose last byte is followed by a page without access, so that a kernel that reads or writes past its operand dies there."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    page = mmap.PAGESIZE
    length = -(-size // page) * page
    mapping = mmap.mmap(-1, length + page)
    address = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(address + length), ctypes.c_size_t(page), PROT_NONE):
        raise OSError(ctypes.get_errno(), "mprotect")
    _kept.append(mapping)
    array = np.ndarray(shape, dtype, buffer=mapping, offset=length - size)
    array[...] = 1
    return rl.from_numpy(array)


class Guarded:
    """A pool of guarded tensors of many shapes and types; made once a process, and filled anew for each call."""

    SHAPES = ((1,), (3,), (17,), (3, 2, 449), (2, 3), (7, 5), (4, 4), (1, 2, 5, 5), (2, 2, 3, 3), (33, 3), (3, 65), (2, 8, 9), (1, 1, 2, 3, 3))  # fmt: skip
    DTYPES = ("float32", "float64", "float16", "int64", "int32", "uint8", "bool", "complex64")

    def __init__(self, rl, np):
        self.tensors = [guarded(rl, np, shape, dtype) for shape in self.SHAPES for dtype in self.DTYPES]

    def sample(self, rng, count=12):
        """Some of them, now and then without their first row (kernels then start off the alignment) or transposed."""
        found = []
        for t in rng.sample(self.tensors, count):
            t = t.detach().fill_(1)  # an object of its own: a call may have set requires_grad or the shape
            kind = rng.random()
            if kind < 0.2 and t.size(0) > 1:
                t = t[1:]
            elif kind < 0.4 and t.dim() > 1:
                t = t.transpose(0, -1)
            elif kind < 0.5 and t.is_floating_point():
                t = t.detach().requires_grad_()
            found.append(t)
        return found


def make_tensors(rl):
    return (
        rl.zeros(()), rl.ones(3), rl.ones(2, 3), rl.zeros(0), rl.zeros(0, 3), rl.zeros(2, 0, 3), rl.arange(3), rl.ones(2, 2, dtype=rl.bool),
        rl.ones(3, dtype=rl.complex64), rl.ones(4, dtype=rl.float16), rl.ones(4, dtype=rl.bfloat16), rl.ones(1).expand(5),
        rl.ones(2, 3, 4).transpose(0, 2), rl.ones(2, 3, requires_grad=True), rl.ones(2, 3, dtype=rl.float64, requires_grad=True),
        rl.full((3,), float("nan")), rl.full((2, 2), float("inf")), rl.tensor([-1, 5, HUGE]), rl.tensor([[1, 0], [-7, 2]]),
        rl.full((2,), -(2**63)), rl.tensor([255, 0], dtype=rl.uint8), rl.ones(2, dtype=rl.uint64), rl.ones(2, 3, device="meta"),
        rl.ones(2, 3, 8), rl.ones(1, 2, 5, 5), rl.ones(2, 2, 3, 3), rl.ones(1, 2, 3, 4, 4), rl.ones(1, 1, 1, 1, 1, 1),
        rl.ones(3, 3, dtype=rl.float64), rl.eye(3), rl.tensor(5), rl.tensor(2**40), rl.tensor(-3), rl.tensor(float("nan")),
        rl.tensor([0, 1, 2], dtype=rl.int32), rl.ones(2, 3)[:, ::2], rl.ones(8)[3:5], rl.ones(4, requires_grad=True) * 2,
    )  # fmt: skip
