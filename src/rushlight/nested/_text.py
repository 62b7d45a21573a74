"""How nested tensors print."""


def describe_strided(t):
    def indented(part):
        return "  " + repr(
            part.detach().requires_grad_(t.requires_grad) if part.is_floating_point() else part
        ).replace("\n", "\n  ")

    text = ",\n".join(map(indented, t.unbind()))
    end = ""
    if t.grad_fn is not None:
        end = f", grad_fn=<{t.grad_fn.name()}>"
    elif t.requires_grad:
        end = ", requires_grad=True"
    return f"nested_tensor([\n{text}\n]{end})"


def describe_jagged(t):
    end = ""
    if t.grad_fn is not None:
        end = f", grad_fn={t.grad_fn}"
    elif t.requires_grad:
        end = ", requires_grad=True"
    sizes = ", ".join(map(str, t.size()))
    return f"NestedTensor(size=({sizes}), offsets={t.offsets()}{end}, contiguous={t.is_contiguous()})"
