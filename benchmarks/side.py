"""Two processes, one for each framework, that time what they are asked in turns.

A benchmark is a script with a function `answer(T, request)`, which times one thing in framework T and returns numbers,
and a `main` that asks a `Pair` for them. The frameworks never share a process, take turns for a few rounds, and the
best time of each counts: what else the machine does in between delays both alike."""

import argparse
import importlib
import json
import subprocess
import sys
import time


def timed(run, seconds=0.05):
    """The best time of one call, in seconds."""
    run()
    start = time.perf_counter()
    run()
    once = max(time.perf_counter() - start, 1e-7)
    repeat = max(1, min(1000, int(0.002 / once)))
    best = float("inf")
    for _ in range(max(3, min(30, int(seconds / (once * repeat))))):
        start = time.perf_counter()
        for _ in range(repeat):
            run()
        best = min(best, (time.perf_counter() - start) / repeat)
    return best


def parser(doc, rounds=3):
    """The options that every benchmark has."""
    p = argparse.ArgumentParser(description=doc.splitlines()[0])
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=rounds)
    p.add_argument("--module", default="rushlight", help="the framework whose times are printed")
    p.add_argument("--rival", default="torch", help="the one it is compared with")
    p.add_argument("--worker", help=argparse.SUPPRESS)
    return p


def serve(module, threads, answer):
    """The worker's side: a line of JSON in, a line of JSON out."""
    T = importlib.import_module(module)
    for part in ("nn.functional", "optim", "fft"):
        importlib.import_module(f"{module}.{part}")
    T.set_num_threads(threads)
    for line in sys.stdin:
        time.sleep(0.005)  # until the other framework's threads have stopped spinning
        try:
            result = answer(T, json.loads(line))
        except Exception as error:
            result = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(result), flush=True)


class Pair:
    """The two workers of a script."""

    def __init__(self, script, options):
        self.rounds = options.rounds
        self.workers = {}
        for label, module in (("rival", options.rival), ("ours", options.module)):
            command = [sys.executable, script, "--worker", module, "--threads", str(options.threads)]
            self.workers[label] = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for worker in self.workers.values():
            worker.stdin.close()
            worker.wait()
            worker.stdout.close()

    def best_of_ours(self, request):
        """The same as best(), of ours alone: nothing is asked of the rival."""
        rival = self.workers.pop("rival")
        try:
            return self.best(request)
        finally:
            self.workers["rival"] = rival

    def best(self, request, doubt=None):
        """({number: best} of ours, the same of the rival's), or text instead of a dictionary where one failed.

        doubt = (low, high): where a ratio of the two lies between after the usual rounds, both take eight times as
        many, so that one delay decides less, on either side."""
        found = {"rival": {}, "ours": {}}
        for round_ in range(8 * self.rounds if doubt else self.rounds):
            if round_ == self.rounds:
                ratios = [found["rival"][k] / found["ours"][k] for k in found["ours"]]
                if not any(doubt[0] < r < doubt[1] for r in ratios):
                    break
            for label in sorted(self.workers, reverse=round_ % 2 == 0):
                worker = self.workers[label]
                worker.stdin.write(json.dumps(request) + "\n")
                worker.stdin.flush()
                line = worker.stdout.readline()
                result = json.loads(line) if line else {"error": "the worker ended"}
                if "error" in result:
                    return tuple(f"{label}: {result['error']}" for _ in range(2))
                for key, value in result.items():
                    found[label][key] = min(found[label].get(key, float("inf")), value)
        return found["ours"], found["rival"]


def duration(seconds):
    return f"{seconds * 1e6:8.2f} us" if seconds < 1e-3 else f"{seconds * 1e3:8.2f} ms"


def cell(ours, rival):
    """A time of ours and how many times as long the rival takes."""
    return f"{duration(ours)} {rival / ours:6.2f}x"
