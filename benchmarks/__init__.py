"""Benchmarks: what a private step costs beside a plain one, as ratios measured in one run."""
