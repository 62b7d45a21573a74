"""Pipes of maps."""

import copy

from rushlight.utils.data.datapipes.datapipe import MapDataPipe, functional_datapipe


class SequenceWrapperMapDataPipe(MapDataPipe):
    """The items of a sequence or mapping, of which a copy is made unless `deepcopy` is False."""

    def __init__(self, sequence, deepcopy=True):
        self.sequence = copy.deepcopy(sequence) if deepcopy else sequence

    def __getitem__(self, index):
        return self.sequence[index]

    def __len__(self):
        return len(self.sequence)


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe):
    """fn of each sample."""

    def __init__(self, datapipe, fn=lambda x: x):
        self.datapipe, self.fn = datapipe, fn

    def __getitem__(self, index):
        return self.fn(self.datapipe[index])

    def __len__(self):
        return len(self.datapipe)


@functional_datapipe("batch")
class BatcherMapDataPipe(MapDataPipe):
    """Lists of batch_size samples."""

    def __init__(self, datapipe, batch_size, drop_last=False, wrapper_class=list):
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size = datapipe, batch_size
        self.drop_last, self.wrapper_class = drop_last, wrapper_class

    def __getitem__(self, index):
        if not 0 <= index < len(self):
            raise IndexError(f"Index {index} is out of bound.")
        begin = index * self.batch_size
        end = min(begin + self.batch_size, len(self.datapipe))
        return self.wrapper_class([self.datapipe[i] for i in range(begin, end)])

    def __len__(self):
        whole, rest = divmod(len(self.datapipe), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)


@functional_datapipe("concat")
class ConcaterMapDataPipe(MapDataPipe):
    """The samples of several pipes one after another."""

    def __init__(self, *datapipes):
        self.datapipes = datapipes

    def __getitem__(self, index):
        offset = index
        for pipe in self.datapipes:
            if offset < len(pipe):
                return pipe[offset]
            offset -= len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self):
        return sum(map(len, self.datapipes))


@functional_datapipe("zip")
class ZipperMapDataPipe(MapDataPipe):
    """Tuples of one sample of each pipe."""

    def __init__(self, *datapipes):
        self.datapipes = datapipes

    def __getitem__(self, index):
        return tuple(pipe[index] for pipe in self.datapipes)

    def __len__(self):
        return min(map(len, self.datapipes))


Batcher, Concater, Mapper, SequenceWrapper, Zipper = (
    BatcherMapDataPipe, ConcaterMapDataPipe, MapperMapDataPipe, SequenceWrapperMapDataPipe, ZipperMapDataPipe
)  # fmt: skip
