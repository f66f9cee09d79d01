"""What the guard looks at: the holders and values that can be reached from a model."""
