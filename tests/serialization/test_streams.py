"""The older streams: pickles followed by storages."""

import gzip
import io

import pytest

import rushlight as rl


class Counting(io.BytesIO):
    """Counts what is read."""

    most = 0

    def read(self, n=-1):
        data = super().read(n)
        self.most = max(self.most, len(data))
        return data


@pytest.mark.parametrize("wrap", [io.BytesIO, Counting, lambda data: gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(data)))])  # fmt: skip
def test_a_pickle_longer_than_what_is_read_first(wrap):
    """Streams may follow one another, and their pickles be of any length."""
    saved = [{"numbers": list(range(400_000)), "w": rl.arange(5.0)}, {"w": rl.ones(3)}]
    f = io.BytesIO()
    for obj in saved:
        rl.save(obj, f, _use_new_zipfile_serialization=False)
    f = wrap(f.getvalue())
    first, second = rl.load(f), rl.load(f)
    assert first["numbers"] == saved[0]["numbers"] and first["w"].tolist() == [0, 1, 2, 3, 4]
    assert second["w"].tolist() == [1, 1, 1] and not f.read()


def test_storages_of_a_stream_are_read_one_by_one(tmp_path):
    f = Counting()
    saved = {str(i): rl.full((1 << 18,), float(i)) for i in range(6)}
    rl.save(saved, f, _use_new_zipfile_serialization=False)
    f.seek(0)
    loaded = rl.load(f)
    assert all(rl.equal(loaded[k], saved[k]) for k in saved) and f.most <= 1 << 20
    (tmp_path / "cut").write_bytes(f.getvalue()[:-5])
    with pytest.raises(Exception, match="truncated"):
        rl.load(tmp_path / "cut")
