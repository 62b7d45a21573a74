"""What authors say of their data sets: addresses, names and MD5 sums of files, classes. `published.json` has them all."""

import functools
import json
import pathlib


@functools.cache
def _facts():
    return json.loads(pathlib.Path(__file__).with_name("published.json").read_text(encoding="utf-8"))


def published(name: str, row: type = list):
    """The entry "data set.attribute", in which lists that contain no other list become a `row`."""
    dataset, attribute = name.split(".")

    def shaped(value):
        if isinstance(value, dict):
            return {key: shaped(inner) for key, inner in value.items()}
        if not isinstance(value, list):
            return value
        nested = any(isinstance(inner, list) for inner in value)
        return [shaped(inner) for inner in value] if nested else row(value)

    return shaped(_facts()[dataset][attribute])
