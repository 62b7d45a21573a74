"""What PyTorch has not: the graph as an image, tables of a model."""
