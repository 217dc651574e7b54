"""How fast protolink_sync is: ``python -m benchmarks``, explained in README.rst."""
