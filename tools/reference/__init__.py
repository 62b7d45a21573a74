"""The API reference is made of the library itself: names, signatures and docstrings."""
