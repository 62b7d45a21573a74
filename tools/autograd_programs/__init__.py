"""Random programs of views, in-place writes and backward, for tools/fuzz_autograd.py and tests/autograd/test_autograd_programs.py.

A program is a list of steps (kind, name, mode, i, j, l, k): `name` is called under the grad mode `mode` with the tensors
i, j and l of those made so far (modulo their number) and the number k, which chooses among its variants. A "view" or a
"pure" step adds its result to the tensors; a "write" changes tensors that are there.
"""

from .execute import make_leaves as make_leaves
from .execute import run_step as run_step
from .grammar import generate as generate
from .grammar import program as program
from .left_out import order_matters as order_matters
from .lockstep import disagreement as disagreement
from .lockstep import show as show
