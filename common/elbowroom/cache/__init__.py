"""What a service keeps of the API server's objects, and in which order it looks at them; sans I/O."""

from elbowroom.cache.backoff import Backoff
from elbowroom.cache.reflector import Change, Reflector
from elbowroom.cache.workqueue import WorkQueue

__all__ = ["Backoff", "Change", "Reflector", "WorkQueue"]
