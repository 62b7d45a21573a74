"""A text to learn: numbers in words, one after the other."""

import torch

_ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def in_words(n):
    if n < 20:
        return _ONES[n]
    if n < 100:
        return _TENS[n // 10 - 2] + ("-" + _ONES[n % 10] if n % 10 else "")
    return _ONES[n // 100] + " hundred" + (" and " + in_words(n % 100) if n % 100 else "")


TEXT = ", ".join(in_words(n) for n in range(400))
LETTERS = sorted(set(TEXT))


def encoded():
    """The text as numbers of letters, and how many letters there are."""
    return torch.tensor([LETTERS.index(c) for c in TEXT]), len(LETTERS)


def windows(data, batch, length):
    """(batch, length) letters from random positions, and the letters that follow each of them."""
    starts = torch.randint(0, len(data) - length - 1, (batch,))
    x = torch.stack([data[s : s + length] for s in starts.tolist()])
    y = torch.stack([data[s + 1 : s + length + 1] for s in starts.tolist()])
    return x, y
