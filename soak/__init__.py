"""Soak: faults, hostile bytes, damage, races and kills, many of each; nothing may be lost, doubled, or loaded silently.

`make soak` runs it all and prints the figures of docs/reliability.md; the default suite runs a small share.
"""
