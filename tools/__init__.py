"""Tools for whoever releases the project."""
