"""What the papers claim, computed exactly as they do, and what contradicts it; never a guarantee."""
