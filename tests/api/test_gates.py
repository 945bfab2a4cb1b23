"""Gates that need each other, in both profiles."""

import pytest

from elbowroom.api.gates import GateDependencyError, UnknownGateError, profile_of

DELAY = "InPlacePodVerticalScalingExclusiveCPUsScaleDownDelay"
EXCLUSIVE = "InPlacePodVerticalScalingExclusiveCPUs"


@pytest.mark.parametrize("profile", ["lab", "v1.37"])
def test_a_gate_that_is_on_by_default_does_not_start_without_what_it_needs(profile: str) -> None:
    with pytest.raises(GateDependencyError) as refused:
        profile_of(profile, {"PodLevelResources": False})
    assert str(refused.value).endswith(" is enabled, but depends on features that are disabled: [PodLevelResources]")


def test_pod_level_resources_go_off_together_with_all_that_needs_them() -> None:
    together = [
        "PodLevelResources",
        "PodLevelResourceManagers",
        "PodLevelResourcesFixDefaulting",
        "PodLevelResourcesFixKubeletQOSClass",
        "InPlacePodLevelResourcesVerticalScaling",
    ]
    profile = profile_of("v1.37", dict.fromkeys(together, False))
    assert not any(profile.on(name) for name in together)


def test_a_preview_of_the_lab_yields_to_what_it_needs_unless_it_was_asked_for() -> None:
    assert profile_of("lab").on(DELAY)
    assert not profile_of("lab", {EXCLUSIVE: False}).on(DELAY)
    with pytest.raises(GateDependencyError, match=f"{DELAY} is enabled"):
        profile_of("lab", {EXCLUSIVE: False, DELAY: True})
    with pytest.raises(GateDependencyError, match=f"{DELAY} is enabled"):
        profile_of("v1.37", {DELAY: True})


def test_an_unknown_gate_is_refused() -> None:
    with pytest.raises(UnknownGateError):
        profile_of("lab", {"Nonsense": True})
