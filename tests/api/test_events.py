"""Event documents: named as upstream names them."""

import random
import re

from elbowroom.api.events import NAME_NS, core_event, new_event

WEB = {"kind": "Pod", "namespace": "default", "name": "web"}


def test_lists_go_by_name_and_so_tell_events_in_the_order_of_their_times() -> None:
    rng = random.Random(7)
    times = [1_700_000_000_000_000_000 + step * NAME_NS for step in range(50)]
    made = [core_event(now, rng, WEB, "Normal", "Pulled", "m", "kubelet") for now in times[::2]]
    made += [new_event(now, rng, WEB, "Normal", "Scheduled", "Binding", "m", "default-scheduler") for now in times[1::2]]
    names = sorted(event["metadata"]["name"] for event in made)
    assert [int(name.removeprefix("web."), 16) // NAME_NS for name in names] == [now // NAME_NS for now in times]
    assert all(re.fullmatch(r"web\.[0-9a-f]{16}", name) for name in names)
