"""What a watched folder promises, a real one and the simulated one."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import uvloop

from elbowroom.host import folders
from elbowroom.machine import Effect, FolderRead, Input, Instant, Machine, WatchFolder, Work
from elbowroom.sim.world import World

Files = dict[str, bytes | None]
Tell = Callable[[Sequence[Files]], list[Files]]
"""Lets the folder hold these files, one set after the other, and gives what was told of it."""


class Watcher:
    """A machine that only watches."""

    def __init__(self) -> None:
        self.told: list[Files] = []

    def start(self, now: Instant, disk: Mapping[str, bytes]) -> Sequence[Effect]:
        return [Work("x", WatchFolder("m"))]

    def step(self, now: Instant, happened: Input) -> Sequence[Effect]:
        assert isinstance(happened, FolderRead) and happened.path == "m"
        self.told.append(dict(happened.files))
        return []


def simulated(sets: Sequence[Files]) -> list[Files]:
    watcher, world = Watcher(), World(1)

    def build(config: Mapping[str, Any], rng: random.Random) -> Machine:
        return watcher

    world.add("w", build)
    for files in sets:
        world.run_for(1)
        world.put_files("w", "m", files)
    world.run_for(1)
    return watcher.told


def real(base: Path, sets: Sequence[Files]) -> list[Files]:
    watcher = Watcher()

    async def go() -> None:
        driver, heard = folders.build({"base": str(base)}), asyncio.Event()

        def post(happened: Input) -> None:
            watcher.step(Instant(0), happened)
            heard.set()

        await driver.start(post)
        for effect in watcher.start(Instant(0), {}):
            assert isinstance(effect, Work)
            driver.work(effect)
        await asyncio.wait_for(heard.wait(), 10)
        for files in sets:
            heard.clear()
            replace(base / "m", files)
            await asyncio.wait_for(heard.wait(), 10)
        await driver.stop()

    uvloop.run(go())
    return watcher.told


def replace(folder: Path, files: Files) -> None:
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        if old.name not in files:
            old.unlink()
    for name, content in files.items():
        assert content is not None, "a file that can't be read is not made by hand"
        (folder / name).write_bytes(content)


@pytest.fixture(params=["real", "simulated"])
def tell(request: pytest.FixtureRequest, tmp_path: Path) -> Tell:
    return simulated if request.param == "simulated" else lambda sets: real(tmp_path, sets)


def test_a_folder_is_told_at_once_then_after_each_change_in_the_order_of_names(tell: Tell) -> None:
    sets: list[Files] = [{"b": b"1", "a": b"2"}, {"b": b"other"}, {"b": b"other", "c": b""}, {}]
    told = tell(sets)
    assert told == [{}, *sets]
    assert list(told[1]) == ["a", "b"]
