"""Calls and streams for as long as you like, cut at random: ``python -m tests.soak``."""
