"""Many runs: recipes that name data, model and method, and what comes of them."""

from reticent.experiments.recipe import Recipe

__all__ = ["Recipe"]
