"""Selective release: what an update costs that was kept because a test or a coin said so."""
