"""What Opacus scripts import from `opacus.utils`."""
