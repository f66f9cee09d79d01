"""The datasets of the papers, each read from the files that its authors publish."""
