"""Images with a class each, in files and folders as their authors publish them."""

import csv
import json
import os
import pathlib
import shutil

import rushlight as rl

from .._pil import open_image, pil
from .folder import ImageFolder, default_loader, find_classes, make_dataset
from .utils import (
    NOT_FOUND,
    _decompress,
    check_integrity,
    download_and_extract_archive,
    download_file_from_google_drive,
    download_url,
    extract_archive,
    list_dir,
    list_files,
    verify_str_arg,
)
from .vision import VisionDataset

__all__ = [
    "CLEVRClassification",
    "Caltech101",
    "Caltech256",
    "Country211",
    "DTD",
    "EuroSAT",
    "FER2013",
    "FGVCAircraft",
    "Flowers102",
    "Food101",
    "GTSRB",
    "INaturalist",
    "Imagenette",
    "Omniglot",
    "OxfordIIITPet",
    "PCAM",
    "Places365",
    "RenderedSST2",
    "SEMEION",
    "SUN397",
    "StanfordCars",
]
_MISSING = "Dataset not found. You can use download=True to download it"


def _index(classes):
    return {name: i for i, name in enumerate(classes)}


class _Labelled(VisionDataset):
    """Files (`_image_files`) and their classes (`_labels`)."""

    def __init__(self, root, transform, target_transform, loader=default_loader):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.loader = loader
        self._image_files, self._labels = [], []

    def _require(self, there, message=_MISSING):
        if not there:
            raise RuntimeError(message)

    def __len__(self):
        return len(self._image_files)

    def __getitem__(self, idx):
        return self._transformed(self.loader(self._image_files[idx]), self._labels[idx])


class Food101(_Labelled):
    """101 kinds of dishes."""

    _URL = "http://data.vision.ee.ethz.ch/cvl/food-101.tar.gz"
    _MD5 = "85eeb15f3717b99a5da872d97d918f87"

    def __init__(
        self,
        root,
        split="train",
        transform=None,
        target_transform=None,
        download=False,
        loader=default_loader,
    ):
        super().__init__(root, transform, target_transform, loader)
        self._split = verify_str_arg(split, "split", ("train", "test"))
        base = pathlib.Path(self.root) / "food-101"
        self._meta_folder, self._images_folder = base / "meta", base / "images"
        if download and not self._check_exists():
            download_and_extract_archive(self._URL, download_root=self.root, md5=self._MD5)
        self._require(self._check_exists())
        listed = json.loads((self._meta_folder / f"{split}.json").read_text())
        self.classes = sorted(listed)
        self.class_to_idx = _index(self.classes)
        for name, files in listed.items():
            self._labels += [self.class_to_idx[name]] * len(files)
            self._image_files += [self._images_folder.joinpath(*f"{file}.jpg".split("/")) for file in files]

    def extra_repr(self):
        return f"split={self._split}"

    def _check_exists(self):
        return self._meta_folder.is_dir() and self._images_folder.is_dir()


class DTD(_Labelled):
    """Textures, in ten partitions."""

    _URL = "https://www.robots.ox.ac.uk/~vgg/data/dtd/download/dtd-r1.0.1.tar.gz"
    _MD5 = "fff73e5086ae6bdbea199a49dfb8a4c1"

    def __init__(
        self,
        root,
        split="train",
        partition=1,
        transform=None,
        target_transform=None,
        download=False,
        loader=default_loader,
    ):
        self._split = verify_str_arg(split, "split", ("train", "val", "test"))
        if not isinstance(partition, int) or not 1 <= partition <= 10:
            raise ValueError(
                "Parameter 'partition' should be an integer with `1 <= partition <= 10`, "
                f"but got {partition} instead"
            )
        self._partition = partition
        super().__init__(root, transform, target_transform, loader)
        self._base_folder = pathlib.Path(self.root) / "dtd"
        self._data_folder = self._base_folder / "dtd"
        if download and not self._data_folder.is_dir():
            download_and_extract_archive(self._URL, download_root=str(self._base_folder), md5=self._MD5)
        self._require(self._data_folder.is_dir())
        listed = (self._data_folder / "labels" / f"{split}{partition}.txt").read_text().split()
        names = [line.split("/")[0] for line in listed]
        self._image_files = [self._data_folder.joinpath("images", *line.split("/")) for line in listed]
        self.classes = sorted(set(names))
        self.class_to_idx = _index(self.classes)
        self._labels = [self.class_to_idx[name] for name in names]

    def extra_repr(self):
        return f"split={self._split}, partition={self._partition}"


class FGVCAircraft(_Labelled):
    """Aircraft by variant, family or manufacturer."""

    _URL = "https://www.robots.ox.ac.uk/~vgg/data/fgvc-aircraft/archives/fgvc-aircraft-2013b.tar.gz"
    _LISTS = {"variant": "variants.txt", "family": "families.txt", "manufacturer": "manufacturers.txt"}

    def __init__(
        self,
        root,
        split="trainval",
        annotation_level="variant",
        transform=None,
        target_transform=None,
        download=False,
        loader=default_loader,
    ):
        super().__init__(root, transform, target_transform, loader)
        self._split = verify_str_arg(split, "split", ("train", "val", "trainval", "test"))
        level = self._annotation_level = verify_str_arg(
            annotation_level, "annotation_level", tuple(self._LISTS)
        )
        self._data_path = os.path.join(self.root, "fgvc-aircraft-2013b")
        if download and not os.path.isdir(self._data_path):
            download_and_extract_archive(self._URL, self.root)
        self._require(os.path.isdir(self._data_path))
        data = pathlib.Path(self._data_path) / "data"
        self.classes = [line.strip() for line in (data / self._LISTS[level]).read_text().splitlines()]
        self.class_to_idx = _index(self.classes)
        for line in (data / f"images_{level}_{split}.txt").read_text().splitlines():
            name, label = line.strip().split(" ", 1)
            self._image_files.append(str(data / "images" / f"{name}.jpg"))
            self._labels.append(self.class_to_idx[label])


class Flowers102(_Labelled):
    """102 kinds of flowers; the lists are MATLAB's files, which SciPy reads."""

    _download_url_prefix = "https://www.robots.ox.ac.uk/~vgg/data/flowers/102/"
    _file_dict = {
        "image": ("102flowers.tgz", "52808999861908f626f3c1f4e79d11fa"),
        "label": ("imagelabels.mat", "e0620be6f572b9609742df49c70aed4d"),
        "setid": ("setid.mat", "a5357ecc9cb78c4bef273ce3793fc85c"),
    }
    _splits_map = {"train": "trnid", "val": "valid", "test": "tstid"}

    def __init__(
        self,
        root,
        split="train",
        transform=None,
        target_transform=None,
        download=False,
        loader=default_loader,
    ):
        super().__init__(root, transform, target_transform, loader)
        self._split = verify_str_arg(split, "split", ("train", "val", "test"))
        self._base_folder = pathlib.Path(self.root) / "flowers-102"
        self._images_folder = self._base_folder / "jpg"
        if download:
            self.download()
        self._require(self._check_integrity(), NOT_FOUND)
        from scipy.io import loadmat

        ids = loadmat(self._base_folder / self._file_dict["setid"][0], squeeze_me=True)
        labels = loadmat(self._base_folder / self._file_dict["label"][0], squeeze_me=True)["labels"]
        for i in ids[self._splits_map[split]].tolist():
            self._labels.append(int(labels[i - 1]) - 1)
            self._image_files.append(self._images_folder / f"image_{i:05d}.jpg")

    def extra_repr(self):
        return f"split={self._split}"

    def _check_integrity(self):
        lists = [self._file_dict[name] for name in ("label", "setid")]
        return self._images_folder.is_dir() and all(
            check_integrity(str(self._base_folder / name), md5) for name, md5 in lists
        )

    def download(self):
        """Fetches what is not there."""
        if self._check_integrity():
            return
        for kind, (name, md5) in self._file_dict.items():
            fetch = download_and_extract_archive if kind == "image" else download_url
            fetch(self._download_url_prefix + name, str(self._base_folder), md5=md5)


class SUN397(_Labelled):
    """397 kinds of scenes."""

    _DATASET_URL = "http://vision.princeton.edu/projects/2010/SUN/SUN397.tar.gz"
    _DATASET_MD5 = "8ca2778205c41d23104230ba66911c7a"

    def __init__(self, root, transform=None, target_transform=None, download=False, loader=default_loader):
        super().__init__(root, transform, target_transform, loader)
        data = self._data_dir = pathlib.Path(self.root) / "SUN397"
        if download and not data.is_dir():
            download_and_extract_archive(self._DATASET_URL, download_root=self.root, md5=self._DATASET_MD5)
        self._require(data.is_dir())
        # lines are /a/abbey: a letter before the name
        self.classes = [line[3:].strip() for line in (data / "ClassName.txt").read_text().splitlines()]
        self.class_to_idx = _index(self.classes)
        self._image_files = list(data.rglob("sun_*.jpg"))
        names = ["/".join(path.relative_to(data).parts[1:-1]) for path in self._image_files]
        self._labels = [self.class_to_idx[name] for name in names]


class StanfordCars(_Labelled):
    """196 kinds of cars; the files have to be fetched by hand."""

    def __init__(
        self,
        root,
        split="train",
        transform=None,
        target_transform=None,
        download=False,
        loader=default_loader,
    ):
        from scipy.io import loadmat

        super().__init__(root, transform, target_transform, loader)
        self._split = verify_str_arg(split, "split", ("train", "test"))
        base = self._base_folder = pathlib.Path(root) / "stanford_cars"
        devkit = base / "devkit"
        lists = {"train": devkit / "cars_train_annos.mat", "test": base / "cars_test_annos_withlabels.mat"}
        images = base / f"cars_{split}"
        if download:
            raise ValueError(
                "The original URL is broken so the StanfordCars dataset cannot be downloaded anymore."
            )
        self._require(devkit.is_dir() and lists[split].exists() and images.is_dir(), "Dataset not found.")
        for car in loadmat(lists[split], squeeze_me=True)["annotations"]:
            self._image_files.append(str(images / car["fname"]))
            self._labels.append(int(car["class"]) - 1)
        self.classes = loadmat(str(devkit / "cars_meta.mat"), squeeze_me=True)["class_names"].tolist()
        self.class_to_idx = _index(self.classes)


class RenderedSST2(_Labelled):
    """Sentences as images, negative or positive."""

    _URL = "https://openaipublic.azureedge.net/clip/data/rendered-sst2.tgz"
    _MD5 = "2384d08e9dcfa4bd55b324e610496ee5"

    def __init__(
        self,
        root,
        split="train",
        transform=None,
        target_transform=None,
        download=False,
        loader=default_loader,
    ):
        super().__init__(root, transform, target_transform, loader)
        self._split = verify_str_arg(split, "split", ("train", "val", "test"))
        folder = pathlib.Path(self.root) / "rendered-sst2" / {"val": "valid"}.get(split, split)
        self.classes = ["negative", "positive"]
        self.class_to_idx = _index(self.classes)

        def there():
            return all((folder / name).is_dir() for name in self.classes)

        if download and not there():
            download_and_extract_archive(self._URL, download_root=self.root, md5=self._MD5)
        self._require(there())
        for path, label in make_dataset(str(folder), extensions=("png",)):
            self._image_files.append(path)
            self._labels.append(label)

    def extra_repr(self):
        return f"split={self._split}"


class GTSRB(_Labelled):
    """German traffic signs."""

    _BASE_URL = "https://sid.erda.dk/public/archives/daaeac0d7ce1152aea9b61d9f1e19370/"
    _ARCHIVES = {
        "train": [("GTSRB-Training_fixed.zip", "513f3c79a4c5141765e10e952eaa2478")],
        "test": [
            ("GTSRB_Final_Test_Images.zip", "c7e4e6327067d32654124b0fe9e82185"),
            ("GTSRB_Final_Test_GT.zip", "fe31e9c9270bbcd7b84b7f21a9d9d9e5"),
        ],
    }

    def __init__(self, root, split="train", transform=None, target_transform=None, download=False):
        super().__init__(root, transform, target_transform, lambda path: open_image(path).convert("RGB"))
        self._split = verify_str_arg(split, "split", ("train", "test"))
        base = self._base_folder = pathlib.Path(root) / "gtsrb"
        self._target_folder = base / "GTSRB" / ("Training" if split == "train" else "Final_Test/Images")
        if download:
            self.download()
        self._require(self._target_folder.is_dir())
        if split == "train":
            samples = make_dataset(str(self._target_folder), extensions=(".ppm",))
        else:
            with open(base / "GT-final_test.csv") as file:
                rows = csv.DictReader(file, delimiter=";", skipinitialspace=True)
                samples = [(str(self._target_folder / row["Filename"]), int(row["ClassId"])) for row in rows]
        self._samples = samples
        self._image_files, self._labels = [s[0] for s in samples], [s[1] for s in samples]

    def download(self):
        """Fetches what is not there."""
        if not self._target_folder.is_dir():
            for name, md5 in self._ARCHIVES[self._split]:
                download_and_extract_archive(self._BASE_URL + name, str(self._base_folder), md5=md5)


class Country211(ImageFolder):
    """Photographs of 211 countries."""

    _URL = "https://openaipublic.azureedge.net/clip/data/country211.tgz"
    _MD5 = "84988d7644798601126c29e9877aab6a"

    def __init__(
        self,
        root,
        split="train",
        transform=None,
        target_transform=None,
        download=False,
        loader=default_loader,
    ):
        self._split = verify_str_arg(split, "split", ("train", "valid", "test"))
        root = pathlib.Path(root).expanduser()
        folder = root / "country211"
        if download and not folder.is_dir():
            download_and_extract_archive(self._URL, download_root=str(root), md5=self._MD5)
        if not folder.is_dir():
            raise RuntimeError(_MISSING)
        super().__init__(
            str(folder / split), transform=transform, target_transform=target_transform, loader=loader
        )
        self.root = str(root)


class EuroSAT(ImageFolder):
    """Satellite images of ten kinds of land."""

    _URL = "https://huggingface.co/datasets/torchgeo/eurosat/resolve/c877bcd43f099cd0196738f714544e355477f3fd/EuroSAT.zip"

    def __init__(self, root, transform=None, target_transform=None, download=False, loader=default_loader):
        root = os.path.expanduser(root)
        base = os.path.join(root, "eurosat")
        folder = os.path.join(base, "2750")
        if download and not os.path.exists(folder):
            os.makedirs(base, exist_ok=True)
            download_and_extract_archive(
                self._URL, download_root=base, md5="c8fa014336c82ac7804f0398fcb19387"
            )
        if not os.path.exists(folder):
            raise RuntimeError(_MISSING)
        super().__init__(folder, transform=transform, target_transform=target_transform, loader=loader)
        self.root = root


class Imagenette(_Labelled):
    """Ten classes of ImageNet that are easily told apart."""

    _BASE_URL = "https://s3.amazonaws.com/fast-ai-imageclas/"
    _ARCHIVES = {
        "full": ("imagenette2.tgz", "fe2fc210e6bb7c5664d602c3cd71e612"),
        "320px": ("imagenette2-320.tgz", "3df6f0d01a2c9592104656642f5e78a3"),
        "160px": ("imagenette2-160.tgz", "e793b78cc4c9e9a4ccc0c1155377a412"),
    }
    _WNID_TO_CLASS = {
        "n01440764": ("tench", "Tinca tinca"),
        "n02102040": ("English springer", "English springer spaniel"),
        "n02979186": ("cassette player",),
        "n03000684": ("chain saw", "chainsaw"),
        "n03028079": ("church", "church building"),
        "n03394916": ("French horn", "horn"),
        "n03417042": ("garbage truck", "dustcart"),
        "n03425413": ("gas pump", "gasoline pump", "petrol pump", "island dispenser"),
        "n03445777": ("golf ball",),
        "n03888257": ("parachute", "chute"),
    }

    def __init__(
        self,
        root,
        split="train",
        size="full",
        download=False,
        transform=None,
        target_transform=None,
        loader=default_loader,
    ):
        super().__init__(root, transform, target_transform, loader)
        self._split = verify_str_arg(split, "split", ["train", "val"])
        self._size = verify_str_arg(size, "size", ["full", "320px", "160px"])
        name, md5 = self._ARCHIVES[size]
        folder = pathlib.Path(self.root) / pathlib.Path(name).stem
        if download:
            if not folder.exists():
                download_and_extract_archive(self._BASE_URL + name, self.root, md5=md5)
        else:
            self._require(folder.exists(), _MISSING + ".")
        images = str(folder / split)
        self.wnids, self.wnid_to_idx = find_classes(images)
        self.classes = [self._WNID_TO_CLASS[wnid] for wnid in self.wnids]
        self.class_to_idx = {name: i for i, names in enumerate(self.classes) for name in names}
        for path, label in make_dataset(images, self.wnid_to_idx, extensions=".jpeg"):
            self._image_files.append(path)
            self._labels.append(label)


class CLEVRClassification(_Labelled):
    """Rendered scenes; the class is the number of objects."""

    _URL = "https://dl.fbaipublicfiles.com/clevr/CLEVR_v1.0.zip"
    _MD5 = "b11922020e72d0cd9154779b2d3d07d2"

    def __init__(
        self,
        root,
        split="train",
        transform=None,
        target_transform=None,
        download=False,
        loader=default_loader,
    ):
        self._split = verify_str_arg(split, "split", ("train", "val", "test"))
        super().__init__(root, transform, target_transform, loader)
        self._base_folder = pathlib.Path(self.root) / "clevr"
        data = self._data_folder = self._base_folder / "CLEVR_v1.0"
        if download and not data.is_dir():
            download_and_extract_archive(self._URL, str(self._base_folder), md5=self._MD5)
        self._require(data.is_dir(), NOT_FOUND)
        self._image_files = sorted((data / "images" / split).glob("*"))
        self._labels = [None] * len(self._image_files)
        if split != "test":
            scenes = json.loads((data / "scenes" / f"CLEVR_{split}_scenes.json").read_text())["scenes"]
            counts = {scene["image_filename"]: len(scene["objects"]) for scene in scenes}
            self._labels = [counts[file.name] for file in self._image_files]

    def extra_repr(self):
        return f"split={self._split}"


class Caltech101(VisionDataset):
    """101 kinds of objects; targets are classes, outlines (which SciPy reads), or both."""

    # folders of annotations that are not called as their images'
    _ANNOTATIONS = {
        "Faces": "Faces_2",
        "Faces_easy": "Faces_3",
        "Motorbikes": "Motorbikes_16",
        "airplanes": "Airplanes_Side_2",
    }

    def __init__(self, root, target_type="category", transform=None, target_transform=None, download=False):
        folder = os.path.join(root, "caltech101")
        super().__init__(folder, transform=transform, target_transform=target_transform)
        os.makedirs(self.root, exist_ok=True)
        kinds = [target_type] if isinstance(target_type, str) else target_type
        self.target_type = [verify_str_arg(t, "target_type", ("category", "annotation")) for t in kinds]
        self._prepare(download, self._check_integrity)
        images = os.path.join(self.root, "101_ObjectCategories")
        self.categories = sorted(os.listdir(images))
        self.categories.remove("BACKGROUND_Google")  # no class
        self.annotation_categories = [self._ANNOTATIONS.get(name, name) for name in self.categories]
        self.index, self.y = [], []
        for i, name in enumerate(self.categories):
            count = len(os.listdir(os.path.join(images, name)))
            self.index += range(1, count + 1)
            self.y += [i] * count

    def _target(self, kind, index):
        if kind == "category":
            return self.y[index]
        from scipy.io import loadmat

        folder = os.path.join(self.root, "Annotations", self.annotation_categories[self.y[index]])
        return loadmat(os.path.join(folder, f"annotation_{self.index[index]:04d}.mat"))["obj_contour"]

    def __getitem__(self, index):
        folder = os.path.join(self.root, "101_ObjectCategories", self.categories[self.y[index]])
        img = open_image(os.path.join(folder, f"image_{self.index[index]:04d}.jpg"))
        targets = tuple(self._target(kind, index) for kind in self.target_type)
        return self._transformed(img, targets if len(targets) > 1 else targets[0])

    def _check_integrity(self):
        return os.path.exists(os.path.join(self.root, "101_ObjectCategories"))

    def __len__(self):
        return len(self.index)

    def download(self):
        """Fetches what is not there."""
        if self._check_integrity():
            return
        download_and_extract_archive(
            "https://data.caltech.edu/records/mzrjq-6wc02/files/caltech-101.zip",
            download_root=self.root,
            filename="caltech-101.zip",
            md5="3138e1922a9193bfa496528edbbc45d0",
        )
        folder = os.path.join(self.root, "caltech-101")
        for name in os.listdir(folder):
            if name.endswith(".gz"):
                extract_archive(os.path.join(folder, name), self.root)
        shutil.rmtree(folder)
        os.remove(os.path.join(self.root, "caltech-101.zip"))

    def extra_repr(self):
        return f"Target type: {self.target_type}"


class Caltech256(VisionDataset):
    """256 kinds of objects."""

    def __init__(self, root, transform=None, target_transform=None, download=False):
        folder = os.path.join(root, "caltech256")
        super().__init__(folder, transform=transform, target_transform=target_transform)
        os.makedirs(self.root, exist_ok=True)
        images = self._images = os.path.join(self.root, "256_ObjectCategories")
        if download and not os.path.exists(images):
            download_and_extract_archive(
                "https://data.caltech.edu/records/nyy15-4j048/files/256_ObjectCategories.tar",
                self.root,
                filename="256_ObjectCategories.tar",
                md5="67b4f42ca05d46448c6bb8ecd2220f6d",
            )
        if not os.path.exists(images):
            raise RuntimeError(NOT_FOUND)
        self.categories = sorted(os.listdir(images))
        self.index, self.y = [], []
        for i, name in enumerate(self.categories):
            count = sum(file.endswith(".jpg") for file in os.listdir(os.path.join(images, name)))
            self.index += range(1, count + 1)
            self.y += [i] * count

    def __getitem__(self, index):
        y = self.y[index]
        name = f"{y + 1:03d}_{self.index[index]:04d}.jpg"
        return self._transformed(open_image(os.path.join(self._images, self.categories[y], name)), y)

    def __len__(self):
        return len(self.index)


class Places365(VisionDataset):
    """Photographs of 365 kinds of places."""

    _SPLITS = ("train-standard", "train-challenge", "val", "test")
    _BASE_URL = "http://data.csail.mit.edu/places/places365/"
    _DEVKIT_META = {
        "standard": ("filelist_places365-standard.tar", "35a0585fee1fa656440f3ab298f8479c"),
        "challenge": ("filelist_places365-challenge.tar", "70a8307e459c3de41690a7c76c931734"),
    }
    _CATEGORIES_META = ("categories_places365.txt", "06c963b85866bd0649f97cb43dd16673")
    _FILE_LIST_META = {
        "train-standard": ("places365_train_standard.txt", "30f37515461640559006b8329efbed1a"),
        "train-challenge": ("places365_train_challenge.txt", "b2931dc997b8c33c27e7329c073a6b57"),
        "val": ("places365_val.txt", "e9f2fd57bfd9d07630173f4e8708e4b1"),
        "test": ("places365_test.txt", "2fce8233fe493576d724142e45d93653"),
    }
    _IMAGES_META = {
        ("train-standard", False): ("train_large_places365standard.tar", "67e186b496a84c929568076ed01a8aa1"),
        ("train-challenge", False): (
            "train_large_places365challenge.tar",
            "605f18e68e510c82b958664ea134545f",
        ),
        ("val", False): ("val_large.tar", "9b71c4993ad89d2d8bcbdc4aef38042f"),
        ("test", False): ("test_large.tar", "41a4b6b724b1d2cd862fb3871ed59913"),
        ("train-standard", True): ("train_256_places365standard.tar", "53ca1c756c3d1e7809517cc47c5561c5"),
        ("train-challenge", True): ("train_256_places365challenge.tar", "741915038a5e3471ec7332404dfb64ef"),
        ("val", True): ("val_256.tar", "e27b17d8d44f4af9a78502beb927f808"),
        ("test", True): ("test_256.tar", "f532f6ad7b582262a2ec8009075e186b"),
    }

    def __init__(
        self,
        root,
        split="train-standard",
        small=False,
        download=False,
        transform=None,
        target_transform=None,
        loader=default_loader,
    ):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.split = verify_str_arg(split, "split", self._SPLITS)
        self.small, self.loader = small, loader
        listed = self.load_categories(download), self.load_file_list(download)
        (self.classes, self.class_to_idx), (self.imgs, self.targets) = listed
        if download:
            self.download_images()

    def __getitem__(self, index):
        path, target = self.imgs[index]
        image = self.loader(path)
        return (image, target) if self.transforms is None else self.transforms(image, target)

    def __len__(self):
        return len(self.imgs)

    @property
    def variant(self):
        """Which of the two sets of files."""
        return "challenge" if "challenge" in self.split else "standard"

    @property
    def images_dir(self):
        """The folder of the images."""
        size = "256" if self.small else "large"
        train = self.split.startswith("train")
        return os.path.join(self.root, f"data_{size}_{self.variant}" if train else f"{self.split}_{size}")

    def _lines(self, meta, download):
        name, md5 = meta
        path = os.path.join(self.root, name)
        if not check_integrity(path, md5=md5):
            if not download:
                raise RuntimeError(
                    f"The file {path} does not exist or is corrupted; download=True fetches it."
                )
            self.download_devkit()
        with open(path) as file:
            return [line.split() for line in file]

    def load_categories(self, download=True):
        """(names, {name: number})"""
        found = {name: int(number) for name, number in self._lines(self._CATEGORIES_META, download)}
        return sorted(found), found

    def load_file_list(self, download=True):
        """([(path, class)], classes); the test set has none."""
        images = []
        for name, *label in self._lines(self._FILE_LIST_META[self.split], download):
            path = os.path.join(self.images_dir, name.lstrip("/").replace("/", os.sep))
            images.append((path, int(label[0]) if label else None))
        return images, [label for _, label in images]

    def download_devkit(self):
        """Fetches the lists."""
        name, md5 = self._DEVKIT_META[self.variant]
        download_and_extract_archive(self._BASE_URL + name, self.root, md5=md5)

    def download_images(self):
        """Fetches the images."""
        if os.path.exists(self.images_dir):
            return
        name, md5 = self._IMAGES_META[self.split, self.small]
        download_and_extract_archive(self._BASE_URL + name, self.root, md5=md5)
        unpacked = self.images_dir.removesuffix("_" + self.variant)
        if unpacked != self.images_dir:  # both training sets unpack to the same folder
            os.rename(unpacked, self.images_dir)

    def extra_repr(self):
        return f"Split: {self.split}\nSmall: {self.small}"


class OxfordIIITPet(VisionDataset):
    """Cats and dogs of 37 breeds; targets are breeds, "binary-category" (cat or dog) or segmentations."""

    _RESOURCES = (
        (
            "https://www.robots.ox.ac.uk/~vgg/data/pets/data/images.tar.gz",
            "5c4f3ee8e5d25df40f4fd59a7f44e54c",
        ),
        (
            "https://www.robots.ox.ac.uk/~vgg/data/pets/data/annotations.tar.gz",
            "95a8c909bbe2e81eed6a22bccdf3f68f",
        ),
    )
    _VALID_TARGET_TYPES = ("category", "binary-category", "segmentation")

    def __init__(
        self,
        root,
        split="trainval",
        target_types="category",
        transforms=None,
        transform=None,
        target_transform=None,
        download=False,
    ):
        self._split = verify_str_arg(split, "split", ("trainval", "test"))
        kinds = [target_types] if isinstance(target_types, str) else target_types
        self._target_types = [verify_str_arg(t, "target_types", self._VALID_TARGET_TYPES) for t in kinds]
        super().__init__(root, transforms, transform, target_transform)
        base = pathlib.Path(self.root) / "oxford-iiit-pet"
        images, lists = base / "images", base / "annotations"
        if download and not (images.is_dir() and lists.is_dir()):
            for url, md5 in self._RESOURCES:
                download_and_extract_archive(url, download_root=str(base), md5=md5)
        if not (images.is_dir() and lists.is_dir()):
            raise RuntimeError(_MISSING)
        rows = [line.split() for line in (lists / f"{split}.txt").read_text().splitlines() if line.strip()]
        names = [row[0] for row in rows]
        self._labels, self._bin_labels = [int(row[1]) - 1 for row in rows], [int(row[2]) - 1 for row in rows]
        breeds = {label: name.rsplit("_", 1)[0] for name, label in zip(names, self._labels)}
        self.bin_classes = ["Cat", "Dog"]
        self.classes = [" ".join(p.title() for p in breeds[i].split("_")) for i in sorted(breeds)]
        self.bin_class_to_idx, self.class_to_idx = _index(self.bin_classes), _index(self.classes)
        self._images = [images / f"{name}.jpg" for name in names]
        self._segs = [lists / "trimaps" / f"{name}.png" for name in names]

    def __len__(self):
        return len(self._images)

    def __getitem__(self, idx):
        image = open_image(self._images[idx]).convert("RGB")
        found = {
            "category": lambda: self._labels[idx],
            "binary-category": lambda: self._bin_labels[idx],
            "segmentation": lambda: open_image(self._segs[idx]),
        }
        targets = tuple(found[kind]() for kind in self._target_types)
        target = None if not targets else targets[0] if len(targets) == 1 else targets
        return self.transforms(image, target) if self.transforms else (image, target)


class PCAM(VisionDataset):
    """Patches of histology, with or without a tumour; h5py reads the files."""

    # (name, Google Drive's id, MD5 sum) of each file, without the .gz with which it is fetched
    _FILES = {
        "train": {
            "images": (
                "camelyonpatch_level_2_split_train_x.h5",
                "1Ka0XfEMiwgCYPdTI-vv6eUElOBnKFKQ2",
                "1571f514728f59376b705fc836ff4b63",
            ),
            "targets": (
                "camelyonpatch_level_2_split_train_y.h5",
                "1269yhu3pZDP8UYFQs-NYs3FPwuK-nGSG",
                "35c2d7259d906cfc8143347bb8e05be7",
            ),
        },
        "test": {
            "images": (
                "camelyonpatch_level_2_split_test_x.h5",
                "1qV65ZqZvWzuIVthK8eVDhIwrbnsJdbg_",
                "d8c2d60d490dbd479f8199bdfa0cf6ec",
            ),
            "targets": (
                "camelyonpatch_level_2_split_test_y.h5",
                "17BHrSrwWKjYsOgTMmoqrIjDy6Fa2o_gP",
                "60a7035772fbdb7f34eb86d4420cf66a",
            ),
        },
        "val": {
            "images": (
                "camelyonpatch_level_2_split_valid_x.h5",
                "1hgshYGWK8V-eGRy8LToWJJgDU_rXWVJ3",
                "d5b63470df7cfa627aeec8b9dc0c066e",
            ),
            "targets": (
                "camelyonpatch_level_2_split_valid_y.h5",
                "1bH8ZRbhSVAhScTS0p9-ZzGnX91cHT3uO",
                "2b85f58b927af9964a4c15b8f7e8f179",
            ),
        },
    }

    def __init__(self, root, split="train", transform=None, target_transform=None, download=False):
        try:
            import h5py
        except ImportError:
            raise RuntimeError("h5py is not found, which reads the files of PCAM: pip install h5py") from None
        self._h5py = h5py
        self._split = verify_str_arg(split, "split", ("train", "test", "val"))
        super().__init__(root, transform=transform, target_transform=target_transform)
        base = pathlib.Path(self.root) / "pcam"
        files = [self._FILES[split][part] for part in ("images", "targets")]
        self._paths = [base / name for name, _, _ in files]
        if download and not all(path.exists() for path in self._paths):
            for name, file_id, md5 in files:
                download_file_from_google_drive(file_id, str(base), filename=name + ".gz", md5=md5)
                _decompress(str(base / (name + ".gz")))
        if not all(path.exists() for path in self._paths):
            raise RuntimeError(_MISSING)

    def __len__(self):
        with self._h5py.File(self._paths[0]) as images:
            return images["x"].shape[0]

    def __getitem__(self, idx):
        with self._h5py.File(self._paths[0]) as images:
            image = pil().fromarray(images["x"][idx]).convert("RGB")
        with self._h5py.File(self._paths[1]) as targets:  # (N, 1, 1, 1)
            target = int(targets["y"][idx, 0, 0, 0])
        return self._transformed(image, target)


class FER2013(VisionDataset):
    """Faces with one of seven expressions, from tables of numbers that have to be fetched by hand."""

    _RESOURCES = {
        "train": ("train.csv", "3f0dfb3d3fd99c811a1299cb947e3131"),
        "test": ("test.csv", "b02c2298636a634e8c2faabbf3ea9a23"),
        "fer": ("fer2013.csv", "f8428a1edbd21e88f42c73edd2a14f95"),
        "icml": ("icml_face_data.csv", "b114b9e04e6949e5fe8b6a98b3892b1d"),
    }

    def __init__(self, root, split="train", transform=None, target_transform=None):
        self._split = verify_str_arg(split, "split", ("train", "test"))
        super().__init__(root, transform=transform, target_transform=target_transform)
        base = pathlib.Path(self.root) / "fer2013"
        whole = next((n for n in ("fer", "icml") if (base / self._RESOURCES[n][0]).exists()), None)
        name, md5 = self._RESOURCES[whole or split]
        if not check_integrity(str(base / name), md5=md5):
            raise RuntimeError(
                f"{name} not found in {base} or corrupted. Its home is "
                "https://www.kaggle.com/c/challenges-in-representation-learning-facial-expression-recognition-challenge"
            )
        wanted = ("Training",) if split == "train" else ("PublicTest", "PrivateTest")
        labelled = whole or split == "train"
        self._samples = []
        with open(base / name, newline="") as file:
            for line in csv.DictReader(file):
                row = {
                    key.strip(): value for key, value in line.items()
                }  # some files have spaces before names
                if not whole or row["Usage"] in wanted:
                    pixels = rl.tensor([int(v) for v in row["pixels"].split()], dtype=rl.uint8)
                    self._samples.append((pixels.reshape(48, 48), int(row["emotion"]) if labelled else None))

    def __len__(self):
        return len(self._samples)

    def __getitem__(self, idx):
        pixels, target = self._samples[idx]
        return self._transformed(pil().fromarray(pixels.numpy()), target)

    def extra_repr(self):
        return f"split={self._split}"


class SEMEION(VisionDataset):
    """Handwritten digits of 16 x 16 pixels."""

    url = "http://archive.ics.uci.edu/ml/machine-learning-databases/semeion/semeion.data"
    filename = "semeion.data"
    md5_checksum = "cb545d371d2ce14ec121470795a77432"

    def __init__(self, root, transform=None, target_transform=None, download=True):
        import numpy as np

        super().__init__(root, transform=transform, target_transform=target_transform)
        path = os.path.join(self.root, self.filename)
        if download and not check_integrity(path, self.md5_checksum):
            download_url(self.url, self.root, self.filename, self.md5_checksum)
        if not check_integrity(path, self.md5_checksum):
            raise RuntimeError(NOT_FOUND)
        table = np.loadtxt(path)
        self.data = (table[:, :256] * 255).astype("uint8").reshape(-1, 16, 16)
        self.labels = np.nonzero(table[:, 256:])[1]

    def __getitem__(self, index):
        return self._transformed(pil().fromarray(self.data[index]), int(self.labels[index]))

    def __len__(self):
        return len(self.data)


class Omniglot(VisionDataset):
    """Characters of 50 alphabets."""

    folder = "omniglot-py"
    download_url_prefix = "https://raw.githubusercontent.com/brendenlake/omniglot/master/python"
    zips_md5 = {
        "images_background": "68d2efa1b9178cc56df9314c21c6e718",
        "images_evaluation": "6b91aef0f799c5bb55b94e3f2daec811",
    }

    def __init__(
        self, root, background=True, transform=None, target_transform=None, download=False, loader=None
    ):
        super().__init__(
            os.path.join(root, self.folder), transform=transform, target_transform=target_transform
        )
        self.background, self.loader = background, loader
        name = "images_background" if background else "images_evaluation"
        md5 = self.zips_md5[name]
        archive = os.path.join(self.root, name + ".zip")
        if download and not check_integrity(archive, md5):
            url = f"{self.download_url_prefix}/{name}.zip"
            download_and_extract_archive(url, self.root, filename=name + ".zip", md5=md5)
        if not check_integrity(archive, md5):
            raise RuntimeError(NOT_FOUND)
        self.target_folder = os.path.join(self.root, name)
        self._alphabets = list_dir(self.target_folder)
        self._characters = [
            os.path.join(alphabet, character)
            for alphabet in self._alphabets
            for character in list_dir(os.path.join(self.target_folder, alphabet))
        ]
        self._flat_character_images = [
            (image, i)
            for i, character in enumerate(self._characters)
            for image in list_files(os.path.join(self.target_folder, character), ".png")
        ]

    def __len__(self):
        return len(self._flat_character_images)

    def __getitem__(self, index):
        name, label = self._flat_character_images[index]
        path = os.path.join(self.target_folder, self._characters[label], name)
        image = open_image(path).convert("L") if self.loader is None else self.loader(path)
        return self._transformed(image, label)


class INaturalist(VisionDataset):
    """Plants and animals; targets are species, or ranks above them."""

    _BASE_URL = "https://ml-inat-competition-datasets.s3.amazonaws.com/"
    _ARCHIVES = {
        "2017": ("2017/train_val_images.tar.gz", "7c784ea5e424efaec655bd392f87301f"),
        "2018": ("2018/train_val2018.tar.gz", "b1c6952ce38f31868cc50ea72d066cc3"),
        "2019": ("2019/train_val2019.tar.gz", "c60a6e2962c9b8ccbd458d12c8582644"),
        "2021_train": ("2021/train.tar.gz", "e0526d53c7f7b2e3167b2b43bb2690ed"),
        "2021_train_mini": ("2021/train_mini.tar.gz", "db6ed8330e634445efc8fec83ae81442"),
        "2021_valid": ("2021/val.tar.gz", "f6f6e0e242e3d4c9569ba56400938afc"),
    }
    _RANKS = ["kingdom", "phylum", "class", "order", "family", "genus"]

    def __init__(
        self,
        root,
        version="2021_train",
        target_type="full",
        transform=None,
        target_transform=None,
        download=False,
        loader=None,
    ):
        self.version = verify_str_arg(version, "version", tuple(self._ARCHIVES))
        super().__init__(os.path.join(root, version), transform=transform, target_transform=target_transform)
        os.makedirs(root, exist_ok=True)
        self._prepare(download, self._check_exists)
        self.all_categories, self.categories_index, self.categories_map = [], {}, []
        kinds = target_type if isinstance(target_type, list) else [target_type]
        new = version.startswith("2021")
        valid = ("full", *self._RANKS) if new else ("full", "super")
        self.target_type = [verify_str_arg(t, "target_type", valid) for t in kinds]
        self._init_2021() if new else self._init_pre2021()
        self.index = [
            (i, name)
            for i, folder in enumerate(self.all_categories)
            for name in os.listdir(os.path.join(self.root, folder))
        ]
        self.loader = loader

    def _init_2021(self):
        """Folders are 00000_kingdom_phylum_class_order_family_genus_species."""
        self.all_categories = sorted(os.listdir(self.root))
        self.categories_index = {rank: {} for rank in self._RANKS}
        for i, name in enumerate(self.all_categories):
            pieces = name.split("_")
            if len(pieces) != 8:
                raise RuntimeError(f"Unexpected category name {name}, wrong number of pieces")
            if pieces[0] != f"{i:05d}":
                raise RuntimeError(f"Unexpected category id {pieces[0]}, expecting {i:05d}")
            found = {}
            for rank, part in zip(self._RANKS, pieces[1:7]):
                known = self.categories_index[rank]
                found[rank] = known.setdefault(part, len(known))
            self.categories_map.append(found)

    def _init_pre2021(self):
        """Folders are super-category/category, which is a number from 2018 on."""
        supers = sorted(os.listdir(self.root))
        self.categories_index = {"super": {name: i for i, name in enumerate(supers)}}
        found = {}
        for i, name in enumerate(supers):
            for category in sorted(os.listdir(os.path.join(self.root, name))):
                if self.version == "2017":
                    number = len(found)
                else:
                    try:
                        number = int(category)
                    except ValueError:
                        raise RuntimeError(f"Unexpected non-numeric dir name: {category}") from None
                if number in found:
                    raise RuntimeError(f"Duplicate category {category}")
                found[number] = (os.path.join(name, category), {"super": i})
        for number in range(max(found, default=-1) + 1):
            if number not in found:
                raise RuntimeError(f"Missing category {number}")
            folder, ranks = found[number]
            self.all_categories.append(folder)
            self.categories_map.append(ranks)

    def __getitem__(self, index):
        category, name = self.index[index]
        path = os.path.join(self.root, self.all_categories[category], name)
        img = self.loader(path) if self.loader is not None else open_image(path)
        targets = tuple(
            category if kind == "full" else self.categories_map[category][kind] for kind in self.target_type
        )
        return self._transformed(img, targets if len(targets) > 1 else targets[0])

    def __len__(self):
        return len(self.index)

    def category_name(self, category_type, category_id):
        """The name of a category of a rank."""
        if category_type == "full":
            return self.all_categories[category_id]
        if category_type not in self.categories_index:
            raise ValueError(f"Invalid category type '{category_type}'")
        for name, number in self.categories_index[category_type].items():
            if number == category_id:
                return name
        raise ValueError(f"Invalid category id {category_id} for {category_type}")

    def _check_exists(self):
        return os.path.exists(self.root) and len(os.listdir(self.root)) > 0

    def download(self):
        """Fetches the archive."""
        if self._check_exists():
            return
        name, md5 = self._ARCHIVES[self.version]
        base = os.path.dirname(self.root)
        download_and_extract_archive(self._BASE_URL + name, base, filename=f"{self.version}.tgz", md5=md5)
        os.rename(os.path.join(base, os.path.basename(name).removesuffix(".tar.gz")), self.root)
