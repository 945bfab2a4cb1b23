"""``elbowroom scale``: many nodes and pods on one machine, then a storm of resizes for which room must be made; and a report of it.

``plan`` says what is done, ``drive`` does it and takes the figures, ``view`` shows how it goes,
``judging`` holds the recorded history against the invariants, ``report`` and ``plot`` make the page.
"""
