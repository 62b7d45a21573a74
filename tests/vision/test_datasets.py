"""Data sets read the files that are published; small ones are written here in their formats."""

import bz2
import gzip
import hashlib
import io
import pathlib
import pickle
import struct
import tarfile
import zipfile

import numpy as np
import pytest

pytest.importorskip("PIL")
from PIL import Image

import rushlight as rl
from rushlight.vision import datasets, transforms
from rushlight.vision.datasets import folder
from rushlight.vision.datasets import utils as files
from rushlight.vision.datasets._pickles import load_pickle


def idx(array):
    return (
        struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()
    )


@pytest.fixture
def digits():
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (5, 28, 28), dtype=np.uint8), np.array([3, 1, 4, 1, 5], np.uint8)


def write_mnist(raw, images, labels, compressed, prefix=("train", "t10k")):
    raw.mkdir(parents=True)
    for kind in prefix:
        for name, array in (("images-idx3", images), ("labels-idx1", labels)):
            path = raw / f"{kind}-{name}-ubyte"
            if compressed:
                path.with_name(path.name + ".gz").write_bytes(gzip.compress(idx(array)))
            else:
                path.write_bytes(idx(array))


@pytest.mark.parametrize("kind", ["MNIST", "FashionMNIST", "KMNIST"])
@pytest.mark.parametrize("compressed", [False, True])
def test_mnist(tmp_path, digits, kind, compressed):
    write_mnist(tmp_path / kind / "raw", *digits, compressed)
    data = getattr(datasets, kind)(str(tmp_path), train=False, transform=transforms.ToTensor())
    assert len(data) == 5 and data.data.shape == (5, 28, 28) and data.targets.tolist() == [3, 1, 4, 1, 5]
    img, label = data[2]
    assert label == 4 and img.shape == (1, 28, 28) and img.dtype == rl.float32
    assert np.array_equal(img.numpy()[0], digits[0][2].astype(np.float32) / 255)
    assert repr(data).splitlines()[:4] == [
        f"Dataset {kind}",
        "    Number of datapoints: 5",
        f"    Root location: {tmp_path}",
        "    Split: Test",
    ]
    assert len(data.classes) == 10 and data.class_to_idx[data.classes[7]] == 7


def test_emnist(tmp_path, digits):
    write_mnist(tmp_path / "EMNIST" / "raw", *digits, True, ("emnist-letters-train", "emnist-letters-test"))
    data = datasets.EMNIST(tmp_path, "letters", train=True)
    assert data[0][1] == 3 and data.classes[1] == "a" and isinstance(data[0][0], Image.Image)
    assert len(datasets.EMNIST.classes_split_dict["balanced"]) == 47
    with pytest.raises(
        ValueError, match="Unknown value 'x' for argument split. Valid values are {'byclass', 'bymerge'"
    ):
        datasets.EMNIST(tmp_path, "x")


@pytest.mark.parametrize(
    "make, error, phrase",
    [
        (
            lambda t: datasets.MNIST(t),
            RuntimeError,
            "Dataset not found. You can use download=True to download it",
        ),
        (
            lambda t: datasets.CIFAR10(t),
            RuntimeError,
            "Dataset not found or corrupted. You can use download=True",
        ),
        (
            lambda t: datasets.CIFAR100(t),
            RuntimeError,
            "Dataset not found or corrupted. You can use download=True",
        ),
        (
            lambda t: datasets.SVHN(t),
            RuntimeError,
            "Dataset not found or corrupted. You can use download=True",
        ),
        (
            lambda t: datasets.STL10(t),
            RuntimeError,
            "Dataset not found or corrupted. You can use download=True",
        ),
        (
            lambda t: datasets.CelebA(t),
            RuntimeError,
            "Dataset not found or corrupted. You can use download=True",
        ),
        (lambda t: datasets.USPS(t), FileNotFoundError, "usps.bz2"),
        (lambda t: datasets.ImageFolder(t), FileNotFoundError, "Couldn't find any class folder in"),
        (lambda t: datasets.ImageFolder(t + "/no"), FileNotFoundError, "No such file or directory"),
        (lambda t: datasets.FakeData(3)[5], IndexError, "FakeData index out of range"),
    ],
)
def test_what_is_missing_is_said(tmp_path, make, error, phrase):
    with pytest.raises(error, match=phrase.replace(".", r"\.")):
        make(str(tmp_path))


def test_damaged_idx_files(tmp_path):
    path = tmp_path / "x"
    for data in (
        b"",
        b"\0\0",
        b"\0\0\x08\x03" + b"\xff" * 12,
        b"\0\0\x08\x01\0\0\0\x09abc",
        b"\x1f\x8b\x08\0",
    ):
        path.write_bytes(data)
        with pytest.raises(ValueError, match="x "):
            datasets.mnist.read_sn3_pascalvincent_tensor(path)
    floats = np.array([1.5, -2.0], ">f4")
    path.write_bytes(struct.pack(">HBBI", 0, 13, 1, 2) + floats.tobytes())
    assert datasets.mnist.read_sn3_pascalvincent_tensor(path).tolist() == [1.5, -2.0]


def md5(path):
    return hashlib.md5(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
def test_cifar(tmp_path, monkeypatch, protocol):
    rng = np.random.default_rng(0)
    base = tmp_path / "cifar-10-batches-py"
    base.mkdir()
    pixels = rng.integers(0, 256, (4, 3072), dtype=np.uint8)
    names = []
    for name in ("data_batch_1", "data_batch_2", "test_batch"):
        batch = {"batch_label": "some", "labels": [1, 2, 3, 0], "data": pixels, "filenames": ["a.png"] * 4}
        (base / name).write_bytes(pickle.dumps(batch, protocol=protocol))
        names.append([name, md5(base / name)])
    (base / "batches.meta").write_bytes(
        pickle.dumps({"label_names": ["a", "b", "c", "d"], "num_vis": 3072}, protocol)
    )
    monkeypatch.setattr(datasets.CIFAR10, "train_list", names[:2])
    monkeypatch.setattr(datasets.CIFAR10, "test_list", names[2:])
    meta = {"filename": "batches.meta", "key": "label_names", "md5": md5(base / "batches.meta")}
    monkeypatch.setattr(datasets.CIFAR10, "meta", meta)
    data = datasets.CIFAR10(str(tmp_path), train=True)
    assert len(data) == 8 and data.data.shape == (8, 32, 32, 3) and data.targets == [1, 2, 3, 0] * 2
    img, label = data[5]
    assert label == 2 and img.mode == "RGB"
    assert np.array_equal(np.asarray(img), pixels[1].reshape(3, 32, 32).transpose(1, 2, 0))
    assert data.class_to_idx == {"a": 0, "b": 1, "c": 2, "d": 3}
    assert len(datasets.CIFAR10(tmp_path, train=False)) == 4
    (base / "test_batch").write_bytes(b"broken")
    with pytest.raises(RuntimeError, match="not found or corrupted"):
        datasets.CIFAR10(tmp_path, train=False)


def test_pickles_of_python_2(tmp_path):
    """The published batches: protocol 2, str as raw bytes, arrays with their bytes in one."""
    raw = bytes(range(6))
    text = (
        b"\x80\x02}q\x00(U\x04dataq\x01cnumpy.core.multiarray\n_reconstruct\nq\x02cnumpy\nndarray\nq\x03K\x00\x85U\x01b\x87"
        b"q\x04R(K\x01K\x02K\x03\x86cnumpy\ndtype\nq\x05U\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xff"
        b"K\x00tb\x89U\x06" + raw + b"tbU\x06labelsq\x06]q\x07(K\x06K\x09eu."
    )
    (tmp_path / "batch").write_bytes(text)
    batch = load_pickle(tmp_path / "batch")
    assert batch["data"].tolist() == [[0, 1, 2], [3, 4, 5]] and batch["labels"] == [6, 9]
    assert pickle.loads(text, encoding="latin1")["data"].tolist() == batch["data"].tolist()


@pytest.mark.parametrize("alias", ["rushlight", "torch"])
def test_pickles_of_tensors(tmp_path, alias):
    """Data sets that a program wrote itself may hold tensors: their data are read, their bounds are checked."""
    x = rl.arange(6, dtype=rl.uint8).view(2, 3)
    text = pickle.dumps({"data": x.T}, 2).replace(b"crushlight\n", f"c{alias}\n".encode())
    (tmp_path / "batch").write_bytes(text)
    assert load_pickle(tmp_path / "batch")["data"].equal(x.T)
    (tmp_path / "batch").write_bytes(text.replace(b"K\x03K\x02", b"K\x7fK\x02"))
    with pytest.raises(pickle.UnpicklingError, match="bytes are not as many"):
        load_pickle(tmp_path / "batch")


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def test_pickles_run_nothing(tmp_path):
    evil = [
        pickle.dumps({"data": Bomb(str(tmp_path / "ran"))}),
        b"cos\nsystem\n(S'touch ran'\ntR.",
        pickle.dumps(np.array([Bomb(str(tmp_path / "ran"))], dtype=object)),
        pickle.dumps(np.zeros(3, [("a", "u1")]), 2),
        pickle.dumps(np.zeros(100), 2).replace(b"\x85", b"\x86"),
        pickle.dumps(np.arange(3), 2)[:-30] + b".",
    ]
    for data in evil:
        (tmp_path / "f").write_bytes(data)
        with pytest.raises(pickle.UnpicklingError, match="f: "):
            load_pickle(tmp_path / "f")
    assert not (tmp_path / "ran").exists()


def test_svhn(tmp_path, monkeypatch):
    scipy_io = pytest.importorskip("scipy.io")
    pixels = np.random.default_rng(0).integers(0, 256, (32, 32, 3, 4), dtype=np.uint8)
    scipy_io.savemat(
        tmp_path / "test_32x32.mat", {"X": pixels, "y": np.array([[1], [10], [3], [9]], np.uint8)}
    )
    row = ["http://nowhere/", "test_32x32.mat", md5(tmp_path / "test_32x32.mat")]
    monkeypatch.setitem(datasets.SVHN.split_list, "test", row)
    data = datasets.SVHN(tmp_path, "test")
    assert [data[i][1] for i in range(4)] == [1, 0, 3, 9]
    assert np.array_equal(np.asarray(data[1][0]), pixels[..., 1])


def test_stl10(tmp_path, monkeypatch):
    base = tmp_path / "stl10_binary"
    base.mkdir()
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (3, 3, 96, 96), dtype=np.uint8)
    for name in ("train_X", "test_X", "unlabeled_X"):
        (base / f"{name}.bin").write_bytes(pixels.tobytes())
    for name in ("train_y", "test_y"):
        (base / f"{name}.bin").write_bytes(bytes([1, 10, 3]))
    (base / "class_names.txt").write_text("airplane\nbird\n")
    (base / "fold_indices.txt").write_text("2 0\n" * 10)
    for attribute in ("train_list", "test_list"):
        listed = [[n, md5(base / n)] for n, _ in getattr(datasets.STL10, attribute)]
        monkeypatch.setattr(datasets.STL10, attribute, listed)
    data = datasets.STL10(tmp_path, "train+unlabeled")
    assert (
        len(data) == 6
        and [data[i][1] for i in range(6)] == [0, 9, 2, -1, -1, -1]
        and data.classes[1] == "bird"
    )
    assert np.array_equal(np.asarray(data[1][0]), pixels[1].transpose(2, 1, 0))
    assert [label for _, label in (datasets.STL10(tmp_path, folds=4)[i] for i in range(2))] == [2, 0]
    with pytest.raises(ValueError, match="folds"):
        datasets.STL10(tmp_path, folds=10)


def test_usps(tmp_path):
    row = " ".join(["4", *(f"{i + 1}:{-1 if i % 2 else 1}" for i in range(256))])
    with bz2.open(tmp_path / "usps.t.bz2", "wt") as f:
        f.write(row + "\n" + row.replace("4 ", "10 ", 1) + "\n")
    data = datasets.USPS(tmp_path, train=False)
    assert (
        len(data) == 2 and data.targets == [3, 9] and np.asarray(data[0][0])[0, :3].tolist() == [255, 0, 255]
    )


def test_celeba(tmp_path, monkeypatch):
    base = tmp_path / "celeba"
    (base / "img_align_celeba").mkdir(parents=True)
    names = ["1.jpg", "2.jpg"]
    for name in names:
        Image.new("RGB", (4, 4), (9, 9, 9)).save(base / "img_align_celeba" / name)
    (base / "list_eval_partition.txt").write_text("1.jpg 0\n2.jpg 1\n")
    (base / "list_attr_celeba.txt").write_text("2\nBald Young\n1.jpg 1 -1\n2.jpg -1 1\n")
    (base / "identity_CelebA.txt").write_text("1.jpg 7\n2.jpg 8\n")
    (base / "list_bbox_celeba.txt").write_text("2\nimage_id x y w h\n1.jpg 1 2 3 4\n2.jpg 5 6 7 8\n")
    (base / "list_landmarks_align_celeba.txt").write_text("2\nlx ly\n1.jpg 1 2\n2.jpg 3 4\n")
    listed = [(d, md5(base / n) if n.endswith("txt") else m, n) for d, m, n in datasets.CelebA.file_list]
    monkeypatch.setattr(datasets.CelebA, "file_list", listed)
    data = datasets.CelebA(tmp_path, "valid", ["attr", "identity"])
    img, (attr, identity) = data[0]
    assert len(data) == 1 and attr.tolist() == [0, 1] and identity == 8 and img.size == (4, 4)
    assert data.attr_names == ["Bald", "Young"]
    assert len(datasets.CelebA(tmp_path, "all", target_type=[])) == 2


def test_image_folder(tmp_path):
    for path, color in (
        ("cat/a.png", 10),
        ("cat/deep/b.PNG", 20),
        ("dog/c.jpg", 30),
        ("dog/notes.txt", None),
    ):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if color is None:
            file.write_text("no image")
        else:
            Image.new("L", (3, 2), color).save(file)
    data = datasets.ImageFolder(str(tmp_path), transform=transforms.PILToTensor())
    assert (
        data.classes == ["cat", "dog"]
        and data.class_to_idx == {"cat": 0, "dog": 1}
        and data.targets == [0, 0, 1]
    )
    assert [p.removeprefix(str(tmp_path)) for p, _ in data.imgs] == [
        "/cat/a.png",
        "/cat/deep/b.PNG",
        "/dog/c.jpg",
    ]
    img, label = data[1]
    assert label == 0 and img.shape == (3, 2, 3) and (img == 20).all()
    texts = datasets.DatasetFolder(
        tmp_path, lambda p: pathlib.Path(p).read_text(), (".txt",), allow_empty=True
    )
    assert texts[0] == ("no image", 1)
    with pytest.raises(
        FileNotFoundError, match="Found no valid file for the classes cat. Supported extensions are: .txt"
    ):
        datasets.DatasetFolder(tmp_path, open, (".txt",))
    with pytest.raises(ValueError, match="cannot be None"):
        folder.make_dataset(str(tmp_path))
    loader = rl.utils.data.DataLoader(data, batch_size=3)
    assert next(iter(loader))[0].shape == (3, 3, 2, 3)


def test_fake_data_repeats_and_leaves_the_stream_alone():
    data = datasets.FakeData(10, (3, 8, 8), 4, transform=transforms.ToTensor())
    rl.manual_seed(3)
    expected = rl.rand(1)
    rl.manual_seed(3)
    first, again, other = data[1], data[1], data[2]
    assert rl.rand(1) == expected
    assert (first[0] == again[0]).all() and first[1] == again[1] and (first[0] != other[0]).any()
    assert isinstance(first[1], int) and 0 <= first[1] < 4
    assert (
        repr(data)
        == "Dataset FakeData\n    Number of datapoints: 10\n    StandardTransform\nTransform: ToTensor()"
    )


def test_download_checks_and_unpacks(tmp_path, digits, monkeypatch):
    server, root = tmp_path / "server", tmp_path / "root"
    server.mkdir()
    listed = []
    for kind in ("train", "t10k"):
        for name, array in (("images-idx3", digits[0]), ("labels-idx1", digits[1])):
            path = server / f"{kind}-{name}-ubyte.gz"
            path.write_bytes(gzip.compress(idx(array)))
            listed.append((path.name, md5(path)))
    monkeypatch.setattr(datasets.MNIST, "mirrors", [f"file://{tmp_path}/nowhere/", f"file://{server}/"])
    monkeypatch.setattr(datasets.MNIST, "resources", listed)
    monkeypatch.setattr("rushlight.hub._download._sleep", lambda seconds: None)
    data = datasets.MNIST(root, download=True)
    assert len(data) == 5
    monkeypatch.setattr(datasets.MNIST, "resources", [(listed[0][0], "0" * 32)])
    with pytest.raises(RuntimeError, match="Error downloading train-images-idx3-ubyte.gz: .*corrupted"):
        datasets.MNIST(tmp_path / "other", download=True)
    assert not list((tmp_path / "other").rglob("*.gz"))


def test_archives_stay_in_their_folder(tmp_path):
    with tarfile.open(tmp_path / "bad.tar.gz", "w:gz") as tar:
        info = tarfile.TarInfo("../outside")
        info.size = 3
        tar.addfile(info, io.BytesIO(b"bad"))
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        archive.writestr("../outside", "bad")
    for name in ("bad.tar.gz", "bad.zip"):
        with pytest.raises(RuntimeError, match="outside is no file below"):
            files.extract_archive(tmp_path / name, tmp_path / "in")
    with tarfile.open(tmp_path / "link.tar", "w") as tar:
        info = tarfile.TarInfo("link")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(info)
    with pytest.raises(RuntimeError, match="link is no file"):
        files.extract_archive(tmp_path / "link.tar", tmp_path / "in")
    with zipfile.ZipFile(tmp_path / "good.zip", "w") as archive:
        archive.writestr("a/b.txt", "good")
    files.extract_archive(tmp_path / "good.zip", tmp_path / "in")
    assert (tmp_path / "in/a/b.txt").read_text() == "good"
    with pytest.raises(RuntimeError, match="Unknown compression"):
        files.extract_archive(tmp_path / "bad.rar")


def test_against_torchvision(theirs, tmp_path, digits):
    import torch

    theirs = theirs.datasets
    write_mnist(tmp_path / "MNIST" / "raw", *digits, False)
    a, b = theirs.MNIST(str(tmp_path)), datasets.MNIST(str(tmp_path))
    assert (
        repr(a) == repr(b) and a[3][1] == b[3][1] and np.array_equal(np.asarray(a[3][0]), np.asarray(b[3][0]))
    )
    assert theirs.EMNIST.classes_split_dict == datasets.EMNIST.classes_split_dict
    for kind in ("MNIST", "FashionMNIST", "KMNIST"):
        assert getattr(theirs, kind).classes == getattr(datasets, kind).classes
    torch.manual_seed(0)
    rl.manual_seed(0)
    for i in range(3):
        (x, s), (y, t) = theirs.FakeData(4, (3, 9, 7))[i], datasets.FakeData(4, (3, 9, 7))[i]
        assert s == t and np.array_equal(np.asarray(x), np.asarray(y))
