"""How fast a DataLoader delivers: `python benchmarks/data.py`. Samples a second of small and large samples, without workers and with two,
and the time from the start of an epoch to its first batch; PyTorch in the same run if it is installed."""

import argparse
import time

import rushlight as rl


def datasets(fw):
    class Images(fw.utils.data.Dataset):
        def __init__(self, count, shape):
            self.images, self.count = fw.ones(16, *shape), count

        def __len__(self):
            return self.count

        def __getitem__(self, i):
            return self.images[i % 16], i % 10

    return {
        "numbers": (fw.utils.data.TensorDataset(fw.arange(20000.0), fw.arange(20000)), 64),
        "images 3x32x32": (Images(8000, (3, 32, 32)), 64),
        "images 3x224x224": (Images(512, (3, 224, 224)), 32),
    }


def measure(fw, dataset, batch_size, workers):
    """(samples a second, seconds to the first batch), the best of three epochs"""
    loader = fw.utils.data.DataLoader(
        dataset, batch_size, shuffle=True, num_workers=workers, persistent_workers=workers > 0
    )
    best, first = 0.0, float("inf")
    for epoch in range(4 if workers else 3):
        start = time.perf_counter()
        batches = iter(loader)
        next(batches)
        if epoch == 0:
            first = time.perf_counter() - start
        for _ in batches:
            pass
        best = max(best, len(dataset) / (time.perf_counter() - start))
    return best, first


def main(frameworks):
    for name in datasets(rl):
        for workers in (0, 2):
            rows = {fw.__name__: measure(fw, *datasets(fw)[name], workers) for fw in frameworks}
            text = "  ".join(
                f"{n} {rate:,.0f}/s (first batch {1e3 * first:.0f} ms)" for n, (rate, first) in rows.items()
            )
            rates = [rate for rate, _ in rows.values()]
            print(
                f"{name:18} {workers} workers  {text}"
                + (f"  ratio {rates[0] / rates[1]:.1f}" if rates[1:] else "")
            )


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    frameworks = [rl]
    try:
        import torch

        frameworks.append(torch)
    except ImportError:
        pass
    main(frameworks)
