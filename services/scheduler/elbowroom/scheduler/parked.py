"""Where unschedulable pods wait, so that an event is put only to those whom it could help (SC-11, SC-28).

A pod waits with each plugin that rejected it, or with the one whose gate holds it back. There it stands with those that the plugin
cannot tell apart: they are asked about once, whatever their number. A resize waits for room on its own node and stands there: what
happens elsewhere never reaches it, so that the cost of an event does not grow with the resizes that wait.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence

Place = tuple[str, str, Hashable]
"""A plugin, the node that its pod is on (empty: it has none yet), and whom it cannot be told from."""


class Parked:
    """Uids by where they wait."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, dict[Hashable, dict[str, None]]]] = {}
        self._places: dict[str, tuple[Place, ...]] = {}

    def add(self, uid: str, places: Sequence[Place]) -> None:
        """The pod waits at all of these."""
        self._places[uid] = tuple(places)
        for plugin, node, alike in places:
            self._groups.setdefault(plugin, {}).setdefault(node, {}).setdefault(alike, {})[uid] = None

    def remove(self, uid: str) -> None:
        for plugin, node, alike in self._places.pop(uid):
            of_node = self._groups[plugin][node]
            del of_node[alike][uid]
            if not of_node[alike]:
                del of_node[alike]
                if not of_node:
                    del self._groups[plugin][node]

    def with_plugin(self, plugin: str) -> Iterator[str]:
        """All that wait with that plugin."""
        return (uid for of_node in self._groups.get(plugin, {}).values() for group in of_node.values() for uid in group)

    @property
    def plugins(self) -> list[str]:
        return list(self._groups)

    def groups(self, plugin: str, node: str) -> list[Mapping[str, None]]:
        """Whom something on that node may help: pods without a node, and those of this one. Those of a group are alike. The groups
        are live: one is empty once all that were in it have left.
        """
        by_node = self._groups.get(plugin)
        if not by_node:
            return []
        return [group for name in dict.fromkeys(("", node)) for group in by_node.get(name, {}).values()]
