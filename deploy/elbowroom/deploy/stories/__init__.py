"""Stories: the main job told step by step on a cluster of its own. A step is told only once it was seen to happen."""

from elbowroom.deploy.stories.playing import tell

__all__ = ["tell"]
