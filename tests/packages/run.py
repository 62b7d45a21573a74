"""Unmodified packages from PyPI on rushlight and on PyTorch, side by side.

    python tests/packages/run.py --install        fetch the packages (no dependencies, never torch) into a folder
    python tests/packages/run.py                  run every case on both and compare
    python tests/packages/run.py --only gpytorch  some cases; --trace shows tracebacks, --table prints markdown

Each case of cases/ runs in a process of its own. Without PyTorch, pass --backend rushlight: then cases only have to run.
RUSHLIGHT_PACKAGES names the folder (default: rushlight-packages in the temporary folder).
"""

import argparse
import importlib.metadata
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
HOME = pathlib.Path(
    os.environ.get("RUSHLIGHT_PACKAGES") or pathlib.Path(tempfile.gettempdir()) / "rushlight-packages"
)
MARK = "result of the case: "


def child(name, backend):
    """Runs one case in this process and prints what it returns."""
    sys.path[:0] = [str(HERE)]
    sys.path.append(str(HOME))
    if backend == "rushlight":
        import rushlight

        rushlight.install_as_torch()
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    space = {"__name__": name, "__file__": str(HERE / "cases" / f"{name}.py")}
    exec(compile((HERE / "cases" / f"{name}.py").read_text(), space["__file__"], "exec"), space)
    result = space["run"]()
    print("\n" + MARK + json.dumps(result), flush=True)


def run(name, backend, limit=240):
    """(result, None) or (None, the error's last lines)."""
    command = [sys.executable, str(HERE / "run.py"), "--child", name, "--backend", backend]
    quiet = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "MPLBACKEND": "Agg", "PYTHONHASHSEED": "0",
             "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}  # fmt: skip
    with tempfile.TemporaryDirectory() as work:
        try:
            done = subprocess.run(
                command,
                cwd=work,
                env={**os.environ, **quiet},
                capture_output=True,
                text=True,
                timeout=limit,
                errors="replace",
            )
        except subprocess.TimeoutExpired:
            return None, f"over {limit} s"
    for line in done.stdout.splitlines():
        if line.startswith(MARK):
            return json.loads(line[len(MARK) :]), None
    return None, done.stderr.strip()[-3000:] or f"exit code {done.returncode}"


def differing(a, b, rtol, path=""):
    """The indices where two results differ."""
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return [d for k in a for d in differing(a[k], b[k], rtol, f"{path}.{k}")]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [
            d
            for i, (x, y) in enumerate(zip(a, b, strict=True))
            for d in differing(x, y, rtol, f"{path}[{i}]")
        ]
    numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in (a, b))
    if numbers and (math.isclose(a, b, rel_tol=rtol, abs_tol=2e-5) or (math.isnan(a) and math.isnan(b))):
        return []
    return [] if a == b else [f"{path or 'result'}: torch {a!r}, rushlight {b!r}"]


def head(name):
    """(packages, what runs): the docstring's first line is `package, package: what runs`."""
    text = (HERE / "cases" / f"{name}.py").read_text().split('"""')[1].strip().split("\n")[0]
    packages, _, what = text.partition(": ")
    return packages.split(", "), what.rstrip(".")


def versions(packages):
    found = {
        d.metadata["Name"].lower().replace("_", "-"): d.version
        for d in importlib.metadata.distributions(path=[str(HOME)])
    }
    return ", ".join(found.get(p.lower().replace("_", "-"), "?") for p in packages)


def install():
    lines = [r for r in (HERE / "requirements.txt").read_text().split("\n") if r and not r.startswith("#")]
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--disable-pip-version-check",
        "--target",
        str(HOME),
    ]
    return subprocess.run(command + lines).returncode


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--install", action="store_true", help="fetch the packages and stop")
    ap.add_argument("--only", nargs="*", default=[], metavar="CASE")
    ap.add_argument("--backend", choices=["both", "torch", "rushlight"], default="both")
    ap.add_argument("--trace", action="store_true", help="print the end of tracebacks")
    ap.add_argument("--table", action="store_true", help="print a markdown table instead of lines")
    ap.add_argument("--child", help=argparse.SUPPRESS)
    args = ap.parse_args()
    if args.child:
        return child(args.child, args.backend)
    if args.install:
        return install()
    names = sorted(p.stem for p in (HERE / "cases").glob("*.py") if not args.only or p.stem in args.only)
    bad = 0
    for name in names:
        packages, what = head(name)
        results = {b: run(name, b) for b in ("torch", "rushlight") if args.backend in ("both", b)}
        errors = {b: error for b, (_, error) in results.items() if error}
        if errors:
            verdict = "; ".join(f"{b} fails: {e.splitlines()[-1][:160]}" for b, e in errors.items())
        else:
            off = differing(results["torch"][0], results["rushlight"][0], 1e-3) if len(results) == 2 else []
            verdict = (
                f"{len(off)} differ: " + "; ".join(off[:3])
                if off
                else ("same" if len(results) == 2 else "runs")
            )
        bad += verdict not in ("same", "runs")
        if args.table:
            command = f"`python tests/packages/run.py --only {name}`"
            print(
                f"| {', '.join(packages)} | {versions(packages)} | {what} | {verdict} | {command} |",
                flush=True,
            )
        else:
            print(f"{name:28} {verdict}", flush=True)
        if args.trace:
            for b, error in errors.items():
                print(f"--- {b}\n{error}\n")
    print(f"{len(names) - bad} of {len(names)} cases")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
