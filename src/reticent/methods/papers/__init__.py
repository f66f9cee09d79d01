"""One paper, one file: DP-SGD with a stage replaced, and `ABOUT`, all that tables and help say of it."""
