"""The parts of tools/hostile.py: what is called (targets), with which tensors (inputs) and other values (values)."""
