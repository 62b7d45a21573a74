"""What is here because PyTorch has it: its name for this package, its private functions, modules that are names only."""
