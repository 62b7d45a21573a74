"""Marks for NVIDIA's profiler: accepted, nobody reads them."""

import contextlib


def range_push(msg):
    return -1


def range_pop():
    return -1


def range_start(msg):
    return -1


def range_end(range_id):
    return None


def mark(msg):
    return None


@contextlib.contextmanager
def range(msg, *args, **kwargs):
    yield
