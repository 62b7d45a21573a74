"""Functions of the package that live in submodules which few programs need: found when first asked for."""

HOMES = {
    "AcceleratorError": "cuda",
    "OutOfMemoryError": "cuda",
    "autocast": "amp",
    "autocast_decrement_nesting": "amp.autocast_mode",
    "autocast_increment_nesting": "amp.autocast_mode",
    "bilinear": "nn.functional",
    "clear_autocast_cache": "amp.autocast_mode",
    "compile": "compiler",
    "finfo": "_type_info",
    "get_autocast_cpu_dtype": "amp.autocast_mode",
    "get_autocast_dtype": "amp.autocast_mode",
    "get_autocast_gpu_dtype": "amp.autocast_mode",
    "get_printoptions": "_tensor_str",
    "gru": "nn._functional.recurrent",
    "gru_cell": "nn._functional.recurrent",
    "iinfo": "_type_info",
    "install_as_torch": "_alias",
    "is_autocast_cache_enabled": "amp.autocast_mode",
    "is_autocast_cpu_enabled": "amp.autocast_mode",
    "is_autocast_enabled": "amp.autocast_mode",
    "load": "serialization",
    "lstm": "nn._functional.recurrent",
    "lstm_cell": "nn._functional.recurrent",
    "pairwise_distance": "nn._functional.margin_loss",
    "printoptions": "_tensor_str",
    "rnn_relu": "nn._functional.recurrent",
    "rnn_relu_cell": "nn._functional.recurrent",
    "rnn_tanh": "nn._functional.recurrent",
    "rnn_tanh_cell": "nn._functional.recurrent",
    "save": "serialization",
    "set_autocast_cache_enabled": "amp.autocast_mode",
    "set_autocast_cpu_dtype": "amp.autocast_mode",
    "set_autocast_cpu_enabled": "amp.autocast_mode",
    "set_autocast_dtype": "amp.autocast_mode",
    "set_autocast_enabled": "amp.autocast_mode",
    "set_autocast_gpu_dtype": "amp.autocast_mode",
    "set_printoptions": "_tensor_str",
    "sparse_coo_tensor": "sparse",
    "sparse_csr_tensor": "sparse",
    "spmm": "sparse",
    "uninstall_as_torch": "_alias",
    "vmap": "_vmap",
}


def find(name):
    """The module that holds a name, or None."""
    if name.endswith("Storage"):
        return "storage"
    return "_foreach" if name.startswith("_foreach_") else HOMES.get(name)
