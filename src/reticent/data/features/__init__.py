"""Features computed from examples by public rules, and statistics released through the door."""
