"""Quantized tensors: integers that stand for (q - zero_point) * scale.

`_schemes.py`: how floats become integers and back. `_tensor.py`: the tensor. `_make.py`: functions that make one.
`_functions.py`, `_views.py`, `_pooling.py`: what ops do with it. `_parameters.py`: scales and zero points chosen from data.
`_legacy.py`, `_cells.py`: linear layers and recurrent cells with packed weights. `_operators.py`, `_decomposed.py`:
torch.ops.quantized and quantized_decomposed. `_files.py`: tensors from the parts that files hold.
All of it is Python over ops on plain integer tensors, and loaded when a program first asks for one of its names.
"""
