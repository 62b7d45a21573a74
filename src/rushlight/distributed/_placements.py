"""How a tensor is spread over the processes of a mesh, as packages write it down: plain values, which nothing uses here."""

import dataclasses


class Placement:
    """Where one dimension of a mesh has the parts of a tensor."""

    def is_shard(self, dim=None):
        return isinstance(self, Shard) and (dim is None or self.dim == dim)

    def is_replicate(self):
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op=None):
        return isinstance(self, Partial) and (reduce_op is None or self.reduce_op == reduce_op)


@dataclasses.dataclass(frozen=True)
class Shard(Placement):
    """Parts along a dimension."""

    dim: int

    def __str__(self):
        return f"S({self.dim})"

    @staticmethod
    def local_shard_size_and_offset(curr_local_size, num_chunks, rank):
        """(size, offset) of one of several parts, which are equal but for the last ones."""
        full = -(-curr_local_size // num_chunks)
        begin = min(full * rank, curr_local_size)
        return min(full, curr_local_size - begin), begin

    def _local_shard_size_and_offset(self, curr_local_size, num_chunks, rank):
        return self.local_shard_size_and_offset(curr_local_size, num_chunks, rank)


@dataclasses.dataclass(frozen=True)
class Replicate(Placement):
    """The whole tensor in every process."""

    def __str__(self):
        return "R"


@dataclasses.dataclass(frozen=True, repr=False)
class Partial(Placement):
    """Terms whose reduction is the tensor."""

    reduce_op: str = "sum"

    def __repr__(self):
        return f"Partial({self.reduce_op})"

    def __str__(self):
        return f"P({self.reduce_op})"
