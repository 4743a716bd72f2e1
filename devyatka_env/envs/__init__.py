"""Environment adapters: thin shells over one table."""
