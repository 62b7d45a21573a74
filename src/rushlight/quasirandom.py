"""Sobol's points: sequences that fill the unit cube more evenly than random numbers."""

import os

import numpy as np

import rushlight as rl

__all__ = ["SobolEngine"]


def _directions(dimension, bits):
    """Joe and Kuo's direction numbers (dimension, bits), most significant first, from the table that SciPy brings."""
    try:
        import scipy
    except ImportError:
        raise ImportError(
            "SobolEngine takes its direction numbers from SciPy's table: pip install scipy"
        ) from None
    with np.load(
        os.path.join(os.path.dirname(scipy.__file__), "stats", "_sobol_direction_numbers.npz")
    ) as table:
        polynomials, initial = table["poly"][:dimension], table["vinit"][:dimension]
    v = np.ones((dimension, bits), np.int64)
    for d in range(1, dimension):
        p, start = int(polynomials[d]), initial[d]
        degree = p.bit_length() - 1
        row = [int(n) for n in start[:degree]][:bits]
        for j in range(degree, bits):
            value = row[j - degree] ^ (row[j - degree] << degree)
            for k in range(1, degree):
                if p >> (degree - k) & 1:
                    value ^= row[j - k] << k
            row.append(value)
        v[d] = row
    return v << np.arange(bits - 1, -1, -1)


class SobolEngine:
    """Draws points of a Sobol sequence in [0, 1)^dimension; scrambled, each seed gives another one."""

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension, scramble=False, seed=None):
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}], got {dimension}"
            )
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self._v = _directions(dimension, self.MAXBIT)
        self._start = np.zeros(dimension, np.int64)
        if scramble:
            self._scramble()
        self.num_generated = 0
        self._point = self._start.copy()

    def _scramble(self):
        """Owen's scrambling in its linear form: the digits times a random triangular matrix, plus a random shift."""
        generator = None
        if self.seed is not None:
            generator = rl.Generator()
            generator.manual_seed(self.seed)
        bits = self.MAXBIT
        shift = rl.randint(2, (self.dimension, bits), generator=generator).numpy()
        self._start = (shift << np.arange(bits)).sum(1)
        triangle = np.tril(rl.randint(2, (self.dimension, bits, bits), generator=generator).numpy())
        index = np.arange(bits)
        triangle[:, index, index] = 1
        shifts = np.arange(bits - 1, -1, -1)
        digits = self._v[:, :, None] >> shifts & 1  # (dimension, number, digit)
        mixed = np.einsum("dij,dnj->dni", triangle, digits) & 1
        self._v = (mixed << shifts).sum(2)

    @property
    def shift(self):
        return rl.from_numpy(self._start.copy())

    @property
    def sobolstate(self):
        return rl.from_numpy(self._v.copy())

    @property
    def quasi(self):
        return rl.from_numpy(self._point.copy())

    def _next(self, n):
        """The n points after the last one, as integers (n, dimension); Gray code changes one direction a step."""
        before = np.arange(self.num_generated, self.num_generated + n, dtype=np.int64)
        lowest = np.log2((~before & (before + 1)).astype(np.float64)).astype(np.int64)
        steps = self._v.T[lowest]
        points = np.bitwise_xor.accumulate(np.concatenate([self._point[None], steps]))[1:] if n else steps
        if n:
            self._point = points[-1].copy()
        return points

    def draw(self, n=1, out=None, dtype=None):
        """The next n points, (n, dimension)."""
        dtype = dtype or rl.get_default_dtype()
        if self.num_generated == 0:
            first = self._start[None][: max(n, 0)]
            self._point = self._start.copy()
            points = np.concatenate([first, self._next(n - 1)]) if n > 1 else first
        else:
            # the sequence began with its origin, so the point before the next one is number num_generated - 1
            self.num_generated -= 1
            points = self._next(n)
            self.num_generated += 1
        self.num_generated += n
        result = rl.from_numpy(points / 2.0**self.MAXBIT).to(dtype)
        return result if out is None else out.resize_(result.shape).copy_(result)

    def draw_base2(self, m, out=None, dtype=None):
        """The next 2**m points; the number drawn must stay a power of two."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: n={self.num_generated}+2**{m}={total}. "
                "If you still want to do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(n, out, dtype)

    def fast_forward(self, n):
        """Skips n points."""
        if n:
            self.draw(n)
        return self

    def reset(self):
        """Back to the first point."""
        self._point, self.num_generated = self._start.copy(), 0
        return self

    def __repr__(self):
        text = f"dimension={self.dimension}"
        if self.scramble:
            text += ", scramble=True"
        if self.seed is not None:
            text += f", seed={self.seed}"
        return f"SobolEngine({text})"
