"""The table of published facts: what it holds has the types that data sets always had."""

import json
import pathlib

import pytest

from rushlight.vision import datasets
from rushlight.vision.datasets._published import published

TABLE = json.loads((pathlib.Path(datasets.__file__).parent / "published.json").read_text())


def plain(value):
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("dataset", [name for name in TABLE if name not in ("LFW", "VOC", "Places365")])
def test_every_entry_is_the_attribute_of_its_data_set(dataset):
    for name, value in TABLE[dataset].items():
        assert plain(vars(getattr(datasets, dataset))[name]) == value


def test_rows_are_tuples_or_lists_as_they_are_asked_for():
    assert datasets.MNIST.resources[0] == ("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873")
    assert datasets.MNIST.classes[3] == "3 - three" and isinstance(datasets.MNIST.classes, list)
    assert datasets.CIFAR10.test_list == [["test_batch", "40351d587109b95175f43aff81a1287e"]]
    assert datasets.LFWPeople.file_dict["original"][:2] == ("lfw", "lfw.tgz")
    assert datasets.WIDERFace.ANNOTATIONS_FILE[2] == "wider_face_split.zip"
    assert datasets.Places365._IMAGES_META["val", True][0] == "val_256.tar"


def test_each_reader_gets_a_table_of_its_own():
    first = published("CIFAR10.train_list")
    first.clear()
    assert len(published("CIFAR10.train_list")) == len(datasets.CIFAR10.train_list) == 5
