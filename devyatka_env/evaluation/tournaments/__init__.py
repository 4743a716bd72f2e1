"""Tournaments: everyone against everyone, cross tables, ratings."""
