"""The promised numbers, measured as ratios in one run: a module for each `make bench…`."""
