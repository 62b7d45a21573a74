"""torch._dispatch.python: the dispatcher in Python. There is no other here, so nothing has to be switched on, and nothing
is there to be compared with."""

import contextlib

enable_python_dispatcher = no_python_dispatcher = enable_crossref_functionalize = contextlib.nullcontext
