"""Kernels of one instruction set must not be taken for those of every processor (csrc/cpu/README.md)."""

import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILDS = sorted(ROOT.glob("build/*/isa"))
pytestmark = pytest.mark.skipif(not BUILDS, reason="needs a build of this tree on x86-64")
each_set = pytest.mark.parametrize("name", ["avx2", "avx512", "bf16", "amx"])
each_build = pytest.mark.parametrize("build", BUILDS, ids=lambda b: b.parent.name)


def symbols(file):
    """(name, binding letter, whether it is an object, section) of each symbol that the file defines."""
    lines = subprocess.run(["objdump", "-t", file], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^[0-9a-f]{16} (.{7}) (\S+)\t[0-9a-f]{16} (?:\.hidden )?(\S+)$", lines, re.M)
    return [
        (name, flags[1] if flags[0] == " " else flags[0], "O" in flags, section)
        for flags, section, name in found
        if section not in ("*UND*", "*ABS*")
    ]


def is_own(name, isa):
    """Whether a symbol belongs to the namespace of the instruction set, or is a variable of a header for all."""
    own = re.match(rf"_Z(GV)?Z*N[A-Z]*2rl{len(isa)}{isa}", name)
    return own or re.match(r"_ZN2rl\d+g_", name)


def is_constant(is_object, section):
    return is_object and section.startswith((".rodata", ".data.rel.ro"))


def foreign_globals(file, isa):
    """Functions, and variables that are written, which are not the instruction set's own."""
    return [
        name
        for name, binding, is_object, section in symbols(file)
        if binding in "gwu" and not is_own(name, isa) and not is_constant(is_object, section)
    ]


@each_build
@each_set
def test_only_the_own_namespace_is_global(build, name):
    """A function that another instruction set defines too would be one of them for all, whichever comes first."""
    assert foreign_globals(build / f"{name}.o", name) == []
    if name == "avx2":  # what there was to hide
        assert any(n.startswith("_ZNSt") for n in foreign_globals(build / "joined" / f"{name}.o", name))


@each_build
@each_set
def test_no_variable_becomes_several(build, name):
    """What a header defines and code writes is one for all instruction sets: its name begins with g_."""
    written = [
        n
        for n, binding, is_object, section in symbols(build / "joined" / f"{name}.o")
        if binding in "wu" and is_object and not is_own(n, name)
        if not is_constant(is_object, section) and not n.startswith("DW.ref.")
    ]
    assert written == []


@each_build
@pytest.mark.parametrize("name", ["avx512", "bf16", "amx"])
def test_nothing_runs_while_the_library_is_loaded(build, name):
    if build.parent.name == "asan":
        return  # the sanitizer registers its variables then
    sections = {section for _, _, _, section in symbols(build / f"{name}.o")}
    assert not [s for s in sections if s.startswith((".init_array", ".ctors"))]
    headers = subprocess.run(["objdump", "-h", build / f"{name}.o"], capture_output=True, text=True).stdout
    assert ".init_array" not in headers
