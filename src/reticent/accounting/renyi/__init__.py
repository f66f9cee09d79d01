"""Renyi divergences: what each event costs at every order, and the conversion to epsilon."""
