"""Ways in from the tools that people already use; each is loaded only when it is asked for."""
