"""rearrange: dimensions named by a pattern, "b (h w) c -> b c h w"."""

from __future__ import annotations

import rushlight as rl


def _sides(pattern):
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError(f"rearrange: expected a pattern with one '->', got {pattern!r}")
    return [_groups(side, pattern) for side in sides]


def _groups(side, pattern):
    """One list of names for each dimension of a side; `...` outside of brackets is a word instead."""
    groups: list[list[str]] = []
    inside: list[str] | None = None
    for word in side.replace("(", " ( ").replace(")", " ) ").split():
        if word == "(":
            if inside is not None:
                raise ValueError(f"rearrange: brackets inside brackets in {pattern!r}")
            inside = []
        elif word == ")":
            if inside is None:
                raise ValueError(f"rearrange: ')' without '(' in {pattern!r}")
            groups.append(inside)
            inside = None
        elif word == "1":
            if inside is None:
                groups.append([])
        elif word != "..." and not word.isidentifier():
            raise ValueError(f"rearrange: invalid name {word!r} in {pattern!r}")
        elif inside is None:
            groups.append(word if word == "..." else [word])
        else:
            inside.append(word)
    if inside is not None:
        raise ValueError(f"rearrange: '(' without ')' in {pattern!r}")
    names = [name for group in groups for name in ([group] if group == "..." else group)]
    if len(set(names)) != len(names):
        raise ValueError(f"rearrange: a name appears twice on one side of {pattern!r}")
    return groups


def _expanded(groups, rank, pattern):
    """The groups with `...` replaced by as many names as it stands for."""
    extra = rank - (len(groups) - ("..." in groups))
    if extra < 0 or (extra and "..." not in groups):
        raise ValueError(f"rearrange: {pattern!r} does not fit a tensor of {rank} dimensions")
    return [f"...{k}" for k in range(extra)]


def rearrange(tensor, pattern, **axes_lengths):
    """Reorders, splits and joins the dimensions of a tensor as a pattern says: "b (h w) c -> b c h w".

    Both sides of "->" name the dimensions; brackets join several into one, `...` stands for all that are not
    named, 1 for a dimension of size 1.

    Args:
        tensor (Tensor or list): the tensor; those of a list are stacked along a new first dimension.
        pattern (str): the dimensions before and after.
        **axes_lengths (int): sizes that the tensor's shape does not tell.

    Example:
        >>> x = torch.arange(6).reshape(1, 6, 1)
        >>> torch.func.rearrange(x, "b (h w) c -> b c h w", h=2)
        tensor([[[[0, 1, 2],
                  [3, 4, 5]]]])
    """
    if not isinstance(tensor, rl.Tensor):
        tensor = rl.stack(list(tensor))
    left, right = _sides(pattern)
    if any("..." in group for group in left if isinstance(group, list)):
        raise ValueError(f"rearrange: '...' inside brackets on the left of {pattern!r}")
    rest = _expanded(left, tensor.dim(), pattern)

    def filled(groups):
        for group in groups:
            if group == "...":
                yield from ([name] for name in rest)
            else:
                yield [n for name in group for n in (rest if name == "..." else [name])]

    left, right = list(filled(left)), list(filled(right))
    names = [name for group in left for name in group]
    order = [name for group in right for name in group]
    if sorted(names) != sorted(order):
        raise ValueError(f"rearrange: both sides of {pattern!r} must have the same names")
    unknown = axes_lengths.keys() - set(names)
    if unknown:
        raise ValueError(f"rearrange: lengths of {sorted(unknown)}, which are not in {pattern!r}")
    sizes = dict(axes_lengths)
    for group, size in zip(left, tensor.shape, strict=True):
        missing = [name for name in group if name not in sizes]
        known = 1
        for name in group:
            known *= sizes.get(name, 1)
        if len(missing) > 1:
            raise ValueError(f"rearrange: the lengths of {missing} in {pattern!r} are not known")
        if size != known and (not missing or not known or size % known):
            raise ValueError(f"rearrange: a dimension of size {size} is not made of {group} in {pattern!r}")
        if missing:
            sizes[missing[0]] = size // known if known else 0
    split = tensor.reshape([sizes[name] for name in names])
    permuted = split.permute([names.index(name) for name in order]) if order else split
    lengths = []
    for group in right:
        lengths.append(1)
        for name in group:
            lengths[-1] *= sizes[name]
    return permuted.reshape(lengths)
