"""Benchmarks: ratios against something run side by side, all by ``python -m benchmarks``; none is a timed test."""
