"""What was released and what it costs: numbers only, no tensors, no torch."""
