"""What the kubelet tells, as events, of its pods and of the machine it is on (RC-150)."""

import random
from collections.abc import Mapping
from typing import Protocol

from elbowroom.api.events import reference
from elbowroom.api.objects import Container, Pod
from elbowroom.kubelet.recorder import Recorder
from elbowroom.machine import Effect, Instant, SetTimer, seconds
from elbowroom.rpc import Calls, Finished

TIMER = "kubelet/events"
RETRY_SECONDS = 10.0


class Services(Protocol):
    """What the events need of their kubelet."""

    def emit(self, *effects: Effect) -> None: ...


class Events:
    """Contexts of its calls: ``("event", ...)``. Its timer is ``TIMER``."""

    def __init__(self, kubelet: Services, calls: Calls, rng: random.Random, node_name: str) -> None:
        self._emit = kubelet.emit
        self._recorder = Recorder(calls, rng, node_name)
        self._images: set[str] = set()
        self._waiting = False

    def of_pod(self, now: Instant, pod: Pod, kind: str, reason: str, message: str, container: Container | None = None) -> None:
        """Tell of a pod, or of one of its containers."""
        field = ""
        if container is not None:
            part = "initContainers" if container in pod.spec.init_containers else "containers"
            field = f"spec.{part}{{{container.name}}}"
        self.of_object(now, reference("Pod", pod.metadata, field_path=field), kind, reason, message)

    def of_object(self, now: Instant, regarding: Mapping[str, str], kind: str, reason: str, message: str) -> None:
        """Tell of what ``regarding`` names."""
        self._emit(*self._recorder.record(now, regarding, kind, reason, message))

    def pulled(self, now: Instant, pod: Pod, container: Container) -> None:
        """The image is pulled in no time; the events say what upstream's would."""
        image = container.image
        present = image in self._images and container.image_pull_policy != "Always"
        if present or container.image_pull_policy == "Never":
            message = f'Container image "{image}" already present on machine and can be accessed by the pod'
            self.of_pod(now, pod, "Normal", "Pulled", message, container)
            return
        self._images.add(image)
        self.of_pod(now, pod, "Normal", "Pulling", f'Pulling image "{image}"', container)
        message = f'Successfully pulled image "{image}" in 0s (0s including waiting). Image size: 0 bytes.'
        self.of_pod(now, pod, "Normal", "Pulled", message, container)

    def finished(self, now: Instant, end: Finished) -> None:
        """One of its calls ended; what failed is sent again after a while."""
        effects, again = self._recorder.finished(now, end)
        self._emit(*effects)
        if again and not self._waiting:
            self._waiting = True
            self._emit(SetTimer(TIMER, Instant(now + seconds(RETRY_SECONDS))))

    def alarm(self, now: Instant) -> None:
        """Its timer fired."""
        self._waiting = False
        self.retry(now)

    def retry(self, now: Instant) -> None:
        """Send again what failed."""
        self._emit(*self._recorder.retry(now))
