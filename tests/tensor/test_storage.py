"""Storages: bytes and elements, their Python objects, sharing, lazy clones, new memory under determinism."""

import copy
import gc
import pickle
import sys
import warnings
import weakref

import pytest

import rushlight as torch


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "TypedStorage is deprecated")
        yield


def test_a_storage_keeps_its_attributes_while_tensors_use_it():
    tensor = torch.zeros(3)
    tensor.untyped_storage().note = "kept"
    gc.collect()
    assert tensor.untyped_storage().note == "kept"
    assert tensor.untyped_storage() is tensor.view(3, 1).untyped_storage()


def test_classes_derived_from_storages_live_as_long_as_the_memory():
    ended = []

    class Own(torch.UntypedStorage):
        def __del__(self):
            ended.append(1)

    storage = Own(8)
    storage.note = 1
    tensor = torch.tensor(storage)
    del storage
    assert not ended
    assert type(tensor.untyped_storage()) is Own
    del tensor
    gc.collect()
    assert ended == [1]


def test_attributes_in_a_cycle_are_collected():
    a, b = torch.UntypedStorage(1), torch.UntypedStorage(1)
    a.other, b.other = b, a
    seen = weakref.ref(a)
    del a, b
    gc.collect()
    assert seen() is None


def test_the_base_class_cannot_be_made():
    with pytest.raises(RuntimeError, match="Cannot directly construct StorageBase"):
        torch._C.StorageBase()


def test_size_of_a_storage_grows_with_its_bytes():
    assert sys.getsizeof(torch.UntypedStorage(1000)) - sys.getsizeof(torch.UntypedStorage(0)) == 1000


@pytest.mark.parametrize(
    "make, error, words",
    [
        (
            lambda: torch.TypedStorage(wrap_storage=torch.UntypedStorage(4)),
            RuntimeError,
            "'dtype' must be specified",
        ),
        (lambda: torch.TypedStorage(0, 0, dtype=torch.float), RuntimeError, "Too many positional"),
        (
            lambda: torch.TypedStorage(dtype=torch.int, device="xla"),
            RuntimeError,
            "Storage device not recognized",
        ),
        (lambda: torch.FloatStorage(device="cpu"), RuntimeError, "'device' cannot be specified"),
        (lambda: torch.FloatStorage(torch.zeros(1)), TypeError, "Argument type not recognized"),
        (lambda: torch.zeros(1).set_(torch.IntStorage(2)), RuntimeError, "Expected a Storage of type"),
        (
            lambda: torch.TypedStorage([1], dtype=torch.int, device="meta")[0],
            NotImplementedError,
            "Not available",
        ),
        (
            lambda: torch.UntypedStorage(4, device="meta").share_memory_(),
            RuntimeError,
            "only available on CPU",
        ),
        (lambda: torch.UntypedStorage.from_file(3, False, 1), TypeError, "must be str, not int"),
        (lambda: torch.ones(2).untyped_storage().__deepcopy__(()), TypeError, "must be dict"),
    ],
)
def test_refusals(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_elements_of_a_storage():
    storage = torch.FloatStorage([1.0, 2.0, 3.0])
    assert isinstance(storage, torch.FloatStorage)
    assert not isinstance(storage, torch.IntStorage)
    assert (storage.type(), storage.dtype, len(storage)) == ("torch.FloatStorage", torch.float32, 3)
    tensor = torch.tensor(storage)
    tensor[0] = 9
    assert storage.tolist() == [9.0, 2.0, 3.0]  # on the same memory
    storage[1] = 7
    assert storage.int().tolist() == [9, 7, 3]
    assert storage.fill_(1).tolist() == [1.0, 1.0, 1.0]
    assert pickle.loads(pickle.dumps(storage)).tolist() == copy.deepcopy(storage).tolist() == [1.0, 1.0, 1.0]


def test_bytes_become_elements_of_the_type_that_is_asked_for():
    assert torch.tensor(torch.tensor([1.0, 2.0]).untyped_storage(), dtype=torch.float32).tolist() == [
        1.0,
        2.0,
    ]
    assert torch.ShortStorage.from_buffer(bytearray([1, 2, 3, 4]), "big").tolist() == [258, 772]
    assert torch.ShortStorage.from_buffer(bytearray([1, 2, 3, 4]), "little").tolist() == [513, 1027]


def test_the_warning_of_removal_comes_once():
    torch.storage._reset_warn_typed_storage_removal()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.zeros(1).storage()
        torch.FloatStorage(1)
    assert [str(w.message)[:26] for w in caught] == ["TypedStorage is deprecated"]


def test_sharing_moves_the_memory_with_its_tensors():
    tensor = torch.arange(4.0)
    view = tensor[1:]
    tensor.share_memory_()
    assert tensor.untyped_storage().is_shared() and view.is_shared()
    tensor[1] = 9
    assert view.tolist() == [9.0, 2.0, 3.0]


def test_lazy_clones_share_memory_until_a_write():
    tensor = torch.arange(3.0)
    clone = tensor._lazy_clone()
    address = torch._C._data_address
    assert address(clone) == address(tensor)
    assert torch._C._is_cow_tensor(tensor) and torch._C._is_cow_tensor(clone.view(3, 1))
    clone.add_(1)
    assert tensor.tolist() == [0.0, 1.0, 2.0]
    assert clone.tolist() == [1.0, 2.0, 3.0]
    assert not torch._C._is_cow_tensor(clone)


@pytest.mark.parametrize(
    "write", [lambda t: t.numpy(), lambda t: t.untyped_storage().fill_(0), lambda t: t.data_ptr()]
)
def test_a_lazy_clone_gives_others_memory_of_its_own(write):
    tensor = torch.arange(3.0)
    clone = tensor._lazy_clone()
    write(clone)
    assert not torch._C._is_cow_tensor(clone)
    assert tensor.tolist() == [0.0, 1.0, 2.0]


def test_new_memory_is_filled_when_determinism_is_asked_for():
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.empty(3).isnan().all()
        assert torch.empty(2, dtype=torch.int16).tolist() == [32767, 32767]
        assert torch.zeros(1).resize_(3).isnan().tolist() == [False, True, True]
        torch.utils.deterministic.fill_uninitialized_memory = False
        assert torch.zeros(1).new_empty(0).numel() == 0
    finally:
        torch.utils.deterministic.fill_uninitialized_memory = True
        torch.use_deterministic_algorithms(False, warn_only=True)
    assert torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("shared", [True, False])
def test_only_shared_mappings_have_a_filename(tmp_path, shared):
    path = str(tmp_path / "f")
    with open(path, "wb") as f:
        f.write(bytes(16))
    for storage in (
        torch.UntypedStorage.from_file(path, shared, 16),
        torch.from_file(path, shared=shared, size=4).untyped_storage(),
    ):
        assert storage.filename == (path if shared else None)
