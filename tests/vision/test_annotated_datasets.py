"""Images with annotations: COCO's JSON and VOC's folders, written here and read back."""

import json
import sys

import pytest

from rushlight.vision import datasets, transforms

Image = pytest.importorskip("PIL.Image")


@pytest.fixture
def coco(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pycocotools", None)  # our own reader, whatever is installed
    for name, colour in (("a.png", "red"), ("b.png", "blue"), ("c.png", "green")):
        Image.new("RGB", (6, 4), colour).save(tmp_path / name)
    notes = [
        {"id": 10, "image_id": 7, "category_id": 1, "area": 4.0, "iscrowd": 0, "caption": "first"},
        {"id": 11, "image_id": 3, "category_id": 2, "area": 9.0, "iscrowd": 0, "caption": "other"},
        {"id": 12, "image_id": 7, "category_id": 2, "area": 25.0, "iscrowd": 1, "caption": "second"},
    ]
    images = [
        {"id": 7, "file_name": "a.png"},
        {"id": 3, "file_name": "b.png"},
        {"id": 5, "file_name": "c.png"},
    ]
    kinds = [
        {"id": 1, "name": "cat", "supercategory": "animal"},
        {"id": 2, "name": "cup", "supercategory": "thing"},
    ]
    (tmp_path / "notes.json").write_text(
        json.dumps({"images": images, "annotations": notes, "categories": kinds})
    )
    return tmp_path


def test_coco_detection(coco):
    data = datasets.CocoDetection(str(coco), str(coco / "notes.json"), transform=transforms.ToTensor())
    assert len(data) == 3 and data.ids == [3, 5, 7] and "Number of datapoints: 3" in repr(data)
    image, target = data[2]
    assert image.shape == (3, 4, 6) and image[:, 0, 0].tolist() == [1.0, 0.0, 0.0]
    assert [note["id"] for note in target] == [10, 12] and data[1][1] == []
    with pytest.raises(ValueError, match="integer"):
        data["7"]
    both = datasets.CocoDetection(
        str(coco), str(coco / "notes.json"), transforms=lambda i, t: (i.size, len(t))
    )
    assert both[2] == ((6, 4), 2)
    (coco / "list.json").write_text("[]")
    with pytest.raises(RuntimeError, match="COCO"):
        datasets.CocoDetection(str(coco), str(coco / "list.json"))


def test_questions_about_coco(coco):
    index = datasets.CocoDetection(str(coco), str(coco / "notes.json")).coco
    assert index.getCatIds(catNms=["cup"]) == [2] and index.getCatIds(supNms="animal") == [1]
    assert sorted(index.getImgIds()) == [3, 5, 7] and index.getImgIds(catIds=[1, 2]) == [7]
    assert index.getAnnIds(imgIds=7, catIds=[2]) == [12] and index.getAnnIds(areaRng=[5, 30]) == [11, 12]
    assert index.getAnnIds(iscrowd=True) == [12] and index.loadCats([1])[0]["name"] == "cat"


def test_coco_captions(coco):
    data = datasets.CocoCaptions(str(coco), str(coco / "notes.json"))
    assert data[2][1] == ["first", "second"] and data[0][1] == ["other"]


NOTE = """<annotation><folder>VOC2012</folder><size><width>6</width><height>4</height></size>
<object><name>cat</name><bndbox><xmin>1</xmin><ymin>2</ymin></bndbox>%s</object>%s</annotation>"""


@pytest.fixture
def voc(tmp_path):
    folder = tmp_path / "VOCdevkit" / "VOC2012"
    for part in (
        "ImageSets/Main",
        "ImageSets/Segmentation",
        "JPEGImages",
        "SegmentationClass",
        "Annotations",
    ):
        (folder / part).mkdir(parents=True)
    for stem, parts, more in (
        ("x", "<part><name>head</name></part>", ""),
        ("y", "", "<object><name>cup</name></object>"),
    ):
        Image.new("RGB", (6, 4), "red").save(folder / "JPEGImages" / f"{stem}.jpg")
        mask = Image.new("P", (6, 4), 15)
        mask.putpalette([i // 3 for i in range(768)])
        mask.putpixel((0, 0), 255)
        mask.save(folder / "SegmentationClass" / f"{stem}.png")
        (folder / "Annotations" / f"{stem}.xml").write_text(NOTE % (parts, more))
    for kind in ("Main", "Segmentation"):
        (folder / "ImageSets" / kind / "train.txt").write_text("x\ny\n")
    return tmp_path


def test_voc_segmentation(voc):
    data = datasets.VOCSegmentation(
        str(voc), transform=transforms.ToTensor(), target_transform=transforms.PILToTensor()
    )
    image, mask = data[1]
    assert len(data) == 2 and image.shape == (3, 4, 6) and data.masks[0].endswith("x.png")
    assert mask.unique().tolist() == [15, 255]


def test_voc_detection(voc):
    data = datasets.VOCDetection(str(voc), year="2012", image_set="train")
    first, second = data[0][1]["annotation"], data[1][1]["annotation"]
    assert first["size"] == {"width": "6", "height": "4"} and first["folder"] == "VOC2012"
    assert first["object"] == [
        {"name": "cat", "bndbox": {"xmin": "1", "ymin": "2"}, "part": {"name": "head"}}
    ]  # a list also of one
    assert [thing["name"] for thing in second["object"]] == ["cat", "cup"]
    assert data.annotations[1].endswith("y.xml")


def test_voc_refusals(voc):
    for arguments in ({"year": "1999"}, {"image_set": "test"}):
        with pytest.raises(ValueError):
            datasets.VOCDetection(str(voc), **arguments)
    with pytest.raises(RuntimeError, match="download=True"):
        datasets.VOCDetection(str(voc), image_set="val")
    with pytest.raises(RuntimeError, match="not fetched"):
        datasets.VOCSegmentation(str(voc), year="2010", download=True)
