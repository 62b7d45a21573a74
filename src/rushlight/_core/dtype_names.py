"""Names that are other names: dtypes' short forms, constants."""

import math

from .. import _C

float = float32 = _C.float32
double = float64 = _C.float64
half = float16 = _C.float16
bfloat16 = _C.bfloat16
long = int64 = _C.int64
int = int32 = _C.int32
short = int16 = _C.int16
int8 = _C.int8
uint8 = _C.uint8
cfloat = complex64 = _C.complex64
cdouble = complex128 = _C.complex128
chalf = complex32 = _C.complex32
pi, e, inf, nan = math.pi, math.e, math.inf, math.nan
newaxis = None
legacy_contiguous_format = _C.contiguous_format
del math
