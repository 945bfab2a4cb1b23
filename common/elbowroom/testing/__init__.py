"""For tests: of elbowroom itself, and of controllers that resize (docs/testing.md)."""
