"""From files to arrays: archives, images, tables, memory maps, and the folders they live in."""
