"""What the scripts use of it."""
import types

deterministic = types.SimpleNamespace(fill_uninitialized_memory=True)
