"""The promised numbers, measured as ratios in one run: `make bench` and `make bench-ui`."""
