"""Plays a story: on a cluster of its own, told as it happens."""

import time
from importlib import import_module

from elbowroom.deploy.errors import UserError
from elbowroom.deploy.stories.stage import Stage
from elbowroom.deploy.stories.telling import Teller, UnmetError


def tell(story: str, *, profile: str = "lab", keep: bool = False) -> bool:
    """Tell the story; True if every step of it really happened. The cluster is taken down again unless ``keep``."""
    module = import_module(f"elbowroom.deploy.stories.{story.replace('-', '_')}")
    teller = Teller()
    teller.title(" ".join((module.__doc__ or "").split()))
    began = time.monotonic()
    with Stage(story, profile, module.cluster(), keep=keep) as stage:
        try:
            module.play(stage, teller)
        except UnmetError:
            stage.went_wrong()
            teller.end(f"The story {story!r} did not come true.", well=False)
            return False
        except (UserError, OSError) as why:
            stage.went_wrong()
            teller.end(f"The story {story!r} broke off: {why}", well=False)
            return False
    teller.end(f"The story {story!r} came true in {time.monotonic() - began:.1f} s.", well=True)
    return True
