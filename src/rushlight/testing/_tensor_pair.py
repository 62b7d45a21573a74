"""Pairs of tensors, and of what can be made one."""

import rushlight as rl

from ._pairs import ErrorMeta, Pair, get_tolerances, make_scalar_mismatch_msg, make_tensor_mismatch_msg

_COMPRESSED = {
    "sparse_csr": ("CSR", "crow_indices", "col_indices"),
    "sparse_csc": ("CSC", "ccol_indices", "row_indices"),
    "sparse_bsr": ("BSR", "crow_indices", "col_indices"),
    "sparse_bsc": ("BSC", "ccol_indices", "row_indices"),
}
_LAYOUTS = {"strided", "jagged", "sparse_coo", *_COMPRESSED}
_UNSIGNED = ("uint16", "uint32", "uint64")


def _name(value):
    return str(value).rpartition(".")[2]


class TensorLikePair(Pair):
    """Two tensors, or values of one type that `as_tensor` takes."""

    def __init__(
        self,
        actual,
        expected,
        *,
        id=(),
        allow_subclasses=True,
        rtol=None,
        atol=None,
        equal_nan=False,
        check_device=True,
        check_dtype=True,
        check_layout=True,
        check_stride=False,
        **other_parameters,
    ):
        actual, expected = self._process_inputs(actual, expected, id=id, allow_subclasses=allow_subclasses)
        super().__init__(actual, expected, id=id, **other_parameters)
        self.rtol, self.atol = get_tolerances(actual, expected, rtol=rtol, atol=atol, id=id)
        self.equal_nan = equal_nan
        self.check_device, self.check_dtype = check_device, check_dtype
        self.check_layout, self.check_stride = check_layout, check_stride

    def _process_inputs(self, actual, expected, *, id, allow_subclasses):
        related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
        if not related or (not allow_subclasses and type(actual) is not type(expected)):
            self._inputs_not_supported()
        tensors = self._to_tensor(actual), self._to_tensor(expected)
        for tensor in tensors:
            self._check_supported(tensor, id=id)
        return tensors

    def _to_tensor(self, tensor_like):
        if isinstance(tensor_like, rl.Tensor):
            return tensor_like
        try:
            return rl.as_tensor(tensor_like)
        except Exception:
            self._inputs_not_supported()

    def _check_supported(self, tensor, *, id):
        if _name(tensor.layout) not in _LAYOUTS:
            raise ErrorMeta(ValueError, f"Unsupported tensor layout {tensor.layout}", id=id)

    def compare(self):
        actual, expected = self.actual, self.expected
        self._compare_attributes(actual, expected)
        if "meta" in (actual.device.type, expected.device.type):
            return  # no values to compare
        with rl.no_grad():
            self._compare_values(*self._equalize_attributes(actual, expected))

    def _compare_attributes(self, actual, expected):
        def differ(name, a, e):
            self._fail(AssertionError, f"The values for attribute '{name}' do not match: {a} != {e}.")

        if actual.shape != expected.shape:
            differ("shape", actual.shape, expected.shape)
        if actual.is_quantized != expected.is_quantized:
            differ("is_quantized", actual.is_quantized, expected.is_quantized)
        elif actual.is_quantized and actual.qscheme() != expected.qscheme():
            differ("qscheme()", actual.qscheme(), expected.qscheme())
        if actual.layout != expected.layout:
            if self.check_layout:
                differ("layout", actual.layout, expected.layout)
        elif self.check_stride and _name(actual.layout) == "strided" and actual.stride() != expected.stride():
            differ("stride()", actual.stride(), expected.stride())
        if self.check_device and actual.device != expected.device:
            differ("device", actual.device, expected.device)
        if self.check_dtype and actual.dtype != expected.dtype:
            differ("dtype", actual.dtype, expected.dtype)

    def _equalize_attributes(self, actual, expected):
        """Both on one device, in one dtype and layout."""
        if actual.device != expected.device:
            actual, expected = actual.cpu(), expected.cpu()
        if actual.dtype != expected.dtype:
            # promote_types refuses uint64 with signed dtypes; values of tests fit int64
            wide = [rl.int64 if _name(t.dtype) in _UNSIGNED else t.dtype for t in (actual, expected)]
            common = rl.promote_types(*wide)
            actual, expected = actual.to(common), expected.to(common)
        if actual.layout != expected.layout:
            actual, expected = (
                t if _name(t.layout) == "strided" else t.to_dense() for t in (actual, expected)
            )
        return actual, expected

    def _compare_values(self, actual, expected):
        layout, close = _name(actual.layout), self._compare_regular_values_close
        options = {"rtol": self.rtol, "atol": self.atol, "equal_nan": self.equal_nan}
        if actual.is_quantized:
            close(actual.dequantize(), expected.dequantize(), **options, identifier="Quantized tensor-likes")
        elif layout == "sparse_coo":
            self._compare_sparse_coo_values(actual, expected, **options)
        elif layout in _COMPRESSED:
            self._compare_sparse_compressed_values(actual, expected, **options)
        elif layout == "jagged":
            close(actual.values(), expected.values(), **options)
        else:
            if actual.dtype.is_floating_point and actual.dtype.itemsize == 1 and (self.rtol or self.atol):
                self._fail(
                    AssertionError,
                    f"Rtol={self.rtol} and atol={self.atol} are not supported for bitwise comparison of low "
                    "dimensional floats. Please use rtol=0.0 and atol=0.0.",
                )
            close(actual, expected, **options)

    def _same_count(self, what, kind, actual, expected):
        if actual != expected:
            message = f"The number of {what} in sparse {kind} tensors does not match: {actual} != {expected}"
            self._fail(AssertionError, message)

    def _compare_sparse_coo_values(self, actual, expected, *, rtol, atol, equal_nan):
        self._same_count("sparse dimensions", "COO", actual.sparse_dim(), expected.sparse_dim())
        self._same_count("specified values", "COO", actual._nnz(), expected._nnz())
        self._compare_regular_values_equal(
            actual._indices(), expected._indices(), identifier="Sparse COO indices"
        )
        self._compare_regular_values_close(
            actual._values(),
            expected._values(),
            rtol=rtol,
            atol=atol,
            equal_nan=equal_nan,
            identifier="Sparse COO values",
        )

    def _compare_sparse_compressed_values(self, actual, expected, *, rtol, atol, equal_nan):
        kind, *methods = _COMPRESSED[_name(actual.layout)]
        self._same_count("specified values", kind, actual._nnz(), expected._nnz())
        for method in methods:
            ours, theirs = getattr(actual, method)(), getattr(expected, method)()
            common = rl.promote_types(ours.dtype, theirs.dtype)  # int32 or int64, each tensor as it likes
            self._compare_regular_values_equal(
                ours.to(common), theirs.to(common), identifier=f"Sparse {kind} {method}"
            )
        self._compare_regular_values_close(
            actual.values(),
            expected.values(),
            rtol=rtol,
            atol=atol,
            equal_nan=equal_nan,
            identifier=f"Sparse {kind} values",
        )

    def _compare_regular_values_equal(self, actual, expected, *, equal_nan=False, identifier=None):
        self._compare_regular_values_close(
            actual, expected, rtol=0, atol=0, equal_nan=equal_nan, identifier=identifier
        )

    def _compare_regular_values_close(self, actual, expected, *, rtol, atol, equal_nan, identifier=None):
        if actual.dtype.itemsize == 1 and actual.dtype.is_floating_point:  # ops on eight bits are few
            actual, expected = actual.float(), expected.float()
        matches = rl.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan)
        if bool(matches.all()):
            return
        options = {"rtol": rtol, "atol": atol, "identifier": identifier}
        if actual.dim() == 0:
            message = make_scalar_mismatch_msg(actual.item(), expected.item(), **options)
        else:
            message = make_tensor_mismatch_msg(actual.detach(), expected.detach(), matches, **options)
        self._fail(AssertionError, message)

    def extra_repr(self):
        return ("rtol", "atol", "equal_nan", "check_device", "check_dtype", "check_layout", "check_stride")
