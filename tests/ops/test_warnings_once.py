"""Warnings that a process shows once: each is looked for in a process of its own, which nothing has warned before."""

import subprocess
import sys
import textwrap

import pytest

PROGRAM = """
import warnings
import rushlight as torch
{before}
def call():
    {call}

counts = []
for always in (False, False, True):
    torch.set_warn_always(always)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        call()
    counts.append(sum({phrase!r} in str(w.message) for w in shown))
print(counts)
"""


@pytest.mark.parametrize(
    "before, call, phrase",
    [
        ("", "torch.meshgrid(torch.ones(2), torch.ones(3))", "required to pass the indexing arg"),
        (
            "rows = torch.arange(12.0).reshape(3, 4).t()",
            "torch.searchsorted(rows, torch.ones(4, 2))",
            "boundary tensor is non-contiguous",
        ),
    ],
)
def test_a_warning_is_shown_once_or_always(before, call, phrase):
    program = textwrap.dedent(PROGRAM).format(before=before, call=call, phrase=phrase)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[1, 0, 1]\n", done.stderr


def test_cartesian_prod_gives_the_indexing_itself():
    program = "import warnings, rushlight as rl; warnings.simplefilter('error'); rl.cartesian_prod(rl.ones(2), rl.ones(3))"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
