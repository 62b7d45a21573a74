"""The examples in a short mode: each runs as a user would start it, learns, and leaves a plot or an image that can be opened."""

import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import textwrap
import xml.etree.ElementTree
import zlib

import pytest

import rushlight as rl

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(rl.__file__)))

pytestmark = pytest.mark.skipif(not EXAMPLES.exists(), reason="needs the source tree")


def run(name, folder, *options):
    """What the example prints. In a folder of its own, where its plot stays."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), *map(str, options)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "it/s" in done.stderr or "/s" in done.stderr, "no progress was shown"
    return done.stdout


def number(pattern, text):
    found = re.search(pattern.replace("#", r"(-?\d+(?:\.\d+)?(?:e[-+]\d+)?)"), text)
    assert found, f"{pattern!r} is not in:\n{text}"
    values = [float(v) for v in found.groups()]
    return values[0] if len(values) == 1 else values


def open_png(path):
    """(height, width) of a PNG whose pixels are all there and not of one colour."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and data[-8:-4] == b"IEND"
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    assert (depth, kind) == (8, 2)
    length = struct.unpack(">I", data[33:37])[0]
    pixels = zlib.decompress(data[41 : 41 + length])
    assert len(pixels) == height * (1 + 3 * width) and len(set(pixels)) > 8
    return height, width


def open_svg(path, shapes):
    """Checks that a chart has at least so many lines or dots, and no coordinate that is not a number."""
    text = path.read_text()
    root = xml.etree.ElementTree.fromstring(text)
    drawn = [e for e in root if e.tag.endswith(("polyline", "circle"))]
    assert len(drawn) >= shapes and "nan" not in text


def test_digits(tmp_path):
    out = run("digits", tmp_path, "--epochs", 6)
    assert number("digits: # %", out) > 91
    open_png(tmp_path / "digits.png")


def test_char_gpt(tmp_path):
    out = run("char_gpt", tmp_path, "--steps", 60)
    start, end = number("character: # at the start, # at the end", out)
    assert start > 3.9 and end < 2.6
    assert "Quoth the Raven" in out
    open_svg(tmp_path / "char_gpt.svg", 1)


def test_lstm_lm(tmp_path):
    out = run("lstm_lm", tmp_path, "--steps", 100)
    start, end = number("character: # at the start, # at the end", out)
    assert start > 45 and end < 8
    open_svg(tmp_path / "lstm_lm.svg", 1)


def test_dcgan(tmp_path):
    out = run("dcgan", tmp_path, "--steps", 200)
    start, end = number("digits: # at the start, # at the end", out)
    assert end < start / 3
    assert open_png(tmp_path / "dcgan.png") == (8 * 26, 30 * 26)


def test_actor_critic(tmp_path):
    out = run("actor_critic", tmp_path, "--steps", 60)
    before, after = number("for # steps before training, # after", out)
    assert after > 2 * before
    open_svg(tmp_path / "actor_critic.svg", 1)


def test_frozen_encoder(tmp_path):
    out = run("frozen_encoder", tmp_path, "--steps", 120)
    learned, random = number("# % right on the trained encoder, # % on a random one", out)
    assert learned > 93 and learned > random + 8
    assert number("reads # %", out) > 93
    open_svg(tmp_path / "frozen_encoder.svg", 2)


def test_custom_loss(tmp_path):
    out = run("custom_loss", tmp_path, "--steps", 300)
    assert number("differ by #", out) < 1e-7
    assert 74 < number("80 %: # %", out) < 86
    assert 45 < number("50%: # %", out) < 55
    open_svg(tmp_path / "custom_loss.svg", 3 + 400)


def test_partial_updates(tmp_path):
    out = run("partial_updates", tmp_path, "--steps", 150)
    before = number("0 to 7: # %", out)
    assert number("by hand: # %", out) > before + 5
    assert number("lr=0: # %", out) > before + 5
    assert "{'0.weight': 0, '0.bias': 0, '2.weight': 128, '2.bias': 2}" in out
    open_png(tmp_path / "partial_updates.png")


def test_anomaly_hunt(tmp_path):
    out = run("anomaly_hunt", tmp_path, "--steps", 400)
    line = 1 + (EXAMPLES / "anomaly_hunt.py").read_text().splitlines().index(
        "    return difference.pow(2).sum(-1).sqrt()"
    )
    assert "'SqrtBackward0' returned nan values" in out and f"anomaly_hunt.py:{line}, in careless" in out
    assert number("towns are # from", out) < 0.05
    open_svg(tmp_path / "anomaly_hunt.svg", 60)


STEPS = {"digits": ["--epochs", "1"], **dict.fromkeys(
    ["char_gpt", "lstm_lm", "dcgan", "actor_critic", "frozen_encoder", "custom_loss", "partial_updates", "anomaly_hunt"],
    ["--steps", "3"],
)}  # fmt: skip


def run_all(folder, module):
    """The numbers that each example prints after a few steps, all in one process, with `module` as torch."""
    code = f"""
        import contextlib, io, json, pathlib, re, sys
        sys.path.insert(0, {str(EXAMPLES)!r})
        printed = {{}}
        for name, options in {STEPS!r}.items():
            file = pathlib.Path({str(EXAMPLES)!r}, name + ".py")
            text = file.read_text().replace("import rushlight as torch", "import {module} as torch")
            sys.argv = [str(file), *options]
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                space = {{"__name__": "__main__", "__file__": str(file)}}
                exec(compile(text.replace("from rushlight", "from {module}"), str(file), "exec"), space)
            assert "rushlight" not in sys.modules or {module!r} == "rushlight"
            lines = [l for l in out.getvalue().splitlines() if not l.startswith("  ")]  # what we add to errors
            printed[name] = re.findall(r"-?\\d+(?:\\.\\d+)?(?:e[-+]\\d+)?", "\\n".join(lines))
        print(json.dumps(printed))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": SOURCE,
            "OMP_NUM_THREADS": "1",
        },  # OpenMP's waiting threads starve each other
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr

    return json.loads(done.stdout.splitlines()[-1])


def test_the_same_numbers_with_pytorch(tmp_path):
    """The examples are PyTorch programs: with torch for rushlight they run unchanged and print the same."""
    pytest.importorskip("torch")
    ours, theirs = run_all(tmp_path, "rushlight"), run_all(tmp_path, "torch")
    for name in STEPS:
        assert len(ours[name]) == len(theirs[name]) > 0, name
        for a, b in zip(ours[name], theirs[name]):
            assert float(a) == pytest.approx(float(b), rel=0.02, abs=0.011), (name, ours[name], theirs[name])
