"""Privacy loss distributions: the tightest price where every parameter was fixed in advance."""
