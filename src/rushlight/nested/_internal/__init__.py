"""Private names of torch.nested that programs import."""
