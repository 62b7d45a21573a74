"""torch._dispatch.python: the dispatcher in Python. There is no other here, so nothing has to be switched on."""

import contextlib

enable_python_dispatcher = no_python_dispatcher = contextlib.nullcontext
