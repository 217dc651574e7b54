"""Cases drawn from public bug reports: what comes over the wire, what a good client does."""
