"""Tables of torch.jit's compiler that packages clear: scripted code stays Python, so they are empty."""


class ConcreteTypeStore:
    """What was made of each class of modules."""

    def __init__(self):
        self.type_store: dict = {}
        self.methods_compiled: set = set()


concrete_type_store = ConcreteTypeStore()
