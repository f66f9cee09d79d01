"""Matrices of correlated noise: Toeplitz, lower triangular, given by their first column; all from public numbers."""
