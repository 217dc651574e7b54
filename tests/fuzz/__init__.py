"""Bytes that nobody would send, for everything that reads bytes: ``python -m tests.fuzz``."""
