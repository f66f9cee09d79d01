"""Reticent: private deep learning in PyTorch, with an epsilon only where it is proved."""
