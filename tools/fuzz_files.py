"""Feeds load() and jit.load() damaged and malicious files: `python tools/fuzz_files.py [--inputs N] [--seed S]`, and under
AddressSanitizer `tools/asan python tools/fuzz_files.py --inputs 200000`. A worker process reads the files in chunks; a
failure is a crash, a file that takes over 10 s of processor time, an exception that a caller of load() does not expect, code run by a
file, or memory beyond what a file of that size justifies. Exit status 1 and the number of the input to repeat:
`--only N`."""

import argparse
import io
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))

SECONDS = 10
# The most memory that a file of n bytes may take: 1-byte instructions make objects of some 200 bytes.
ALLOWED_BYTES, ALLOWED_RATIO = 160 << 20, 400
EXPECTED = (
    "UnpicklingError",
    "RuntimeError",
    "EOFError",
    "ValueError",
    "NotImplementedError",
    "UnicodeDecodeError",
)
FORBIDDEN = (
    "os.",
    "subprocess.",
    "socket.",
    "exec",
    "compile",
    "pickle.find_class",
    "shutil.",
    "ctypes.",
    "import",
    "code.",
)
HARMLESS = ("os.listdir", "os.scandir", "socket.gethostname")


class Ran(BaseException):
    """A file made the process do something."""


watching = False


def audit(event, args):
    if watching and event.startswith(FORBIDDEN) and event not in HARMLESS:
        raise Ran(f"{event} {args!r}"[:300])
    if watching and event == "open" and args[1] and set(args[1]) & set("wax+"):
        raise Ran(f"open {args!r}"[:300])


def damaged(data, rng):
    """Bytes changed, cut out, doubled, or taken from elsewhere in the file."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        at, kind = rng.randrange(len(data) + 1), rng.randrange(8)
        length = min(rng.choice((1, 2, 4, 8, 64)), len(data) - at)
        if kind < 3:
            data[at : at + 1] = bytes([rng.randrange(256)])
        elif kind == 3:
            number = rng.choice(
                (0, 1, -1, 0x7F, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 40, (1 << 63) - 1, len(data))
            )
            data[at : at + 8] = (number % (1 << 64)).to_bytes(8, rng.choice(("little", "little", "big")))
        elif kind == 4:
            del data[at : at + length]
        elif kind == 5:
            data[at:at] = data[at : at + length]
        elif kind == 6 and data:
            other = rng.randrange(len(data))
            data[at : at + length] = data[other : other + length]
        elif rng.random() < 0.2:
            del data[at:]
        if not data:
            return b"\x80"
    return bytes(data)


class Inputs:
    """Input number i: mutations of valid files and random programs; below zero, the attacks made by hand."""

    def __init__(self, seed, first):
        import fuzz_attacks
        import fuzz_seeds

        self.seed = seed
        self.attacks = fuzz_attacks.attacks() if first < 0 else []
        self.seeds = [*fuzz_seeds.seeds().values()]
        self.rezipped, self.random_program = fuzz_seeds.rezipped, fuzz_attacks.random_program
        self.zips = [s for s in self.seeds if s[:2] == b"PK" and b"data.pkl" in s]

    def __getitem__(self, i):
        if i < 0:
            return self.attacks[i]
        rng = random.Random(f"{self.seed}-{i}")
        kind = rng.random()
        if kind < 0.6:
            return damaged(rng.choice(self.seeds), rng)
        if kind < 0.8:  # inside the archive, with checksums that are right
            entry = rng.choice(("data.pkl", "data.pkl", "data.pkl", "byteorder", "code/__torch__.py"))
            return self.rezipped(rng.choice(self.zips), {entry: lambda body: damaged(body, rng)})
        program = self.random_program(rng)
        if rng.random() < 0.3:
            program = damaged(program, rng)
        return self.rezipped(rng.choice(self.zips), {"data.pkl": lambda _: program})


def use(value):
    """Reads what was loaded: every element of small tensors, the corners of large ones."""
    import rushlight as rl

    seen, todo = set(), [value]
    while todo and len(seen) < 20000:
        item = todo.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, rl.Tensor):
            if item.device.type == "meta":
                continue
            if item.layout != rl.strided:
                item = item._values() if item.layout == rl.sparse_coo else item.values()
            if item.numel() <= 100_000 and max(item.shape, default=0) <= 100_000:
                item.detach().tolist()
                item.detach().clone()
            elif item.numel():
                item.detach()[(0,) * item.dim()].item()
                item.detach()[(-1,) * item.dim()].item()
        elif isinstance(item, rl.nn.Module):
            todo.extend(item.state_dict().values())
        elif isinstance(item, dict):
            todo.extend(item)
            todo.extend(item.values())
        elif isinstance(item, (list, tuple, set, frozenset)):
            todo.extend(item)


def peak_bytes():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith("VmHWM"))


def reset_peak():
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")


def reader_of(rl, data, i, path):
    """One of the ways to load: from memory, from a file, from a mapped file."""
    if data[:2] == b"PK" and len(data) % 3 == 0:
        return lambda: rl.jit.load(io.BytesIO(data))
    if i % 4 > 1:
        return lambda: rl.load(io.BytesIO(data))
    path.write_bytes(data)
    return lambda: rl.load(path, mmap=i % 4 == 1)


def attempt(rl, load):
    """The kind of failure, or None; a load may end in a value or in an expected exception."""
    global watching
    signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of processor time: the machine may be busy
    watching = True
    try:
        value = load()
        watching = False
        use(value)
        return None, True
    except Exception as e:
        kinds = {c.__name__ for c in type(e).__mro__}
        failed = not kinds & set(EXPECTED) or isinstance(e, (RecursionError, MemoryError))
        return f"unexpected {type(e).__name__}: {str(e)[:200]}" if failed else None, False
    except Ran as e:
        return f"ran code: {e}", False
    finally:
        watching = False
        signal.setitimer(signal.ITIMER_PROF, 0)


def prepare():
    """Everything that load() imports when it needs it, so that an import later is a file's doing."""
    import codecs

    import fuzz_seeds

    import rushlight as rl

    for codec in ("raw_unicode_escape", "latin1", "ascii", "utf-8"):
        codecs.lookup(codec)
    for data in fuzz_seeds.seeds().values():
        try:
            use(rl.load(io.BytesIO(data)))
        except Exception:
            use(rl.jit.load(io.BytesIO(data)))
    rl.memory.set_cache_limit(
        0
    )  # so that freed memory is given back, and under ASan every block has its own bounds
    return rl


def work(seed, first, last, status):
    """Reads inputs first ... last - 1; the number of the current one is in the file `status`, for when we die."""
    rl = prepare()
    inputs = Inputs(seed, first)
    first = max(first, -len(inputs.attacks))
    signal.signal(signal.SIGPROF, hang)
    sys.addaudithook(audit)
    sanitized = "libasan" in os.environ.get("LD_PRELOAD", "")
    loaded = failures = 0
    largest = 0
    path = pathlib.Path(f"{status}.pt")
    with open(status, "r+b", buffering=0) as progress:
        for i in range(first, last):
            progress.seek(0)
            progress.write(b"%12d" % i)
            data = inputs[i]
            watch_memory = i < 0 or i % 8 == 0
            if watch_memory:
                reset_peak()
                before = peak_bytes()
            failure, was_loaded = attempt(rl, reader_of(rl, data, i, path))
            loaded += was_loaded
            if watch_memory:
                grown = peak_bytes() - before
                largest = max(largest, grown)
                if grown > (ALLOWED_BYTES + ALLOWED_RATIO * len(data)) * (2 if sanitized else 1):
                    failure = failure or f"took {grown >> 20} MB for a file of {len(data)} bytes"
            if failure:
                failures += 1
                print(f"input {i}: {failure}", flush=True)
    print(f"done {loaded} {largest >> 20} {last - first}", flush=True)
    return 1 if failures else 0


def hang(signum, frame):
    raise Ran(f"took more than {SECONDS} s")


def run(total, seed, chunk, quiet):
    """Runs all inputs in worker processes; returns the number of failures."""
    failures = loaded = largest = count = 0
    start = time.time()
    status = pathlib.Path(f"/tmp/fuzz_files.{os.getpid()}")
    for first in (-100_000, *range(0, total, chunk)):  # the attacks, however many there are, then the others
        last = 0 if first < 0 else min(first + chunk, total)
        while first < last:
            status.write_bytes(b"%12d" % first)
            command = [
                sys.executable,
                __file__,
                "--work",
                str(first),
                str(last),
                str(status),
                "--seed",
                str(seed),
            ]
            # A hang inside C code cannot be interrupted by the worker itself.
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=chunk * 0.5 + 600)
                output, errors, code = done.stdout, done.stderr, done.returncode
            except subprocess.TimeoutExpired as e:
                output, errors, code = (e.stdout or b"").decode(), "", "timeout"
            lines = output.splitlines()
            failures += sum(line.startswith("input ") for line in lines)
            print(
                *[line for line in lines if line.startswith("input ")], sep="\n", end="\n" if failures else ""
            )
            if lines and lines[-1].startswith("done"):
                loaded += int(lines[-1].split()[1])
                largest = max(largest, int(lines[-1].split()[2]))
                count += int(lines[-1].split()[3])
                break
            died = int(status.read_bytes())
            print(f"input {died}: the process died ({code})\n{errors[-3000:]}", flush=True)
            failures += 1
            first = died + 1
            if failures > 50:
                return failures
        if not quiet:
            print(
                f"{count} inputs, {loaded} loaded, {failures} failures, {time.time() - start:.0f} s",
                flush=True,
            )
    for left in (status, pathlib.Path(f"{status}.pt")):
        left.unlink(missing_ok=True)
    ran = pathlib.Path("/tmp/rushlight-fuzz-ran")
    if ran.exists():
        print("a command of a file was run")
        ran.unlink()
        failures += 1
    print(
        f"{count} inputs, {loaded} loaded, {failures} failures, at most {largest} MB for one, {time.time() - start:.0f} s"
    )
    return failures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--chunk", type=int, default=5000)
    parser.add_argument("--only", type=int)
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        sys.exit(work(options.seed, int(options.work[0]), int(options.work[1]), options.work[2]))
    if options.only is not None:
        status = pathlib.Path(f"/tmp/fuzz_files.{os.getpid()}")
        status.write_bytes(b"0")
        sys.exit(work(options.seed, options.only, options.only + 1, str(status)))
    sys.exit(1 if run(options.inputs, options.seed, options.chunk, options.quiet) else 0)
