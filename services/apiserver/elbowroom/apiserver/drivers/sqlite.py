"""The durable disk: SQLite in WAL mode, one fsync per group of writes.

``synchronous=FULL`` makes each commit durable before it returns, so an acknowledged write survives ``kill -9`` and a power
cut. Checkpoints cost tens of milliseconds when they come by themselves in the middle of a load; here they run when the host
says that it is ``idle``, and otherwise only when the WAL has grown past ``WAL_PAGES``. Its file keeps its room then: to make an
overwritten block durable costs two thirds of what an appended one does.
"""

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from elbowroom.apiserver.store import LOG_PREFIX, StoreError
from elbowroom.machine import Persist
from elbowroom.machine.steps import unheard

SCHEMA_VERSION = 1
WAL_PAGES = 16_384  # of 4 KiB
WAL_BYTES_KEPT = 8 << 20
"""How much room the WAL keeps over a checkpoint."""


class SqliteDisk:
    """Satisfies ``Disk`` on one file. Opening a file that another version wrote, or that is damaged, raises ``StoreError``."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        try:
            self._db = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            tables = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if version != SCHEMA_VERSION and (version or tables):
                self._db.close()
                raise StoreError(
                    f"{self._path} has schema version {version}, this version of elbowroom reads {SCHEMA_VERSION}:"
                    " use the version that wrote it, or start with another data directory"
                )
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.execute(f"PRAGMA wal_autocheckpoint={WAL_PAGES}")
            self._db.execute(f"PRAGMA journal_size_limit={WAL_BYTES_KEPT}")
            if not version:
                self._db.executescript(
                    "BEGIN;"
                    "CREATE TABLE log (rev INTEGER PRIMARY KEY, value BLOB NOT NULL);"
                    "CREATE TABLE other (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;"
                    f"PRAGMA user_version={SCHEMA_VERSION};"
                    "COMMIT;"
                )
        except sqlite3.DatabaseError as why:
            raise self._damaged(why) from why

    def load(self) -> dict[str, bytes]:
        """All keys and values."""
        try:
            found = {f"{LOG_PREFIX}{rev:020d}": value for rev, value in self._db.execute("SELECT rev, value FROM log ORDER BY rev")}
            found.update(self._db.execute("SELECT key, value FROM other"))
        except sqlite3.DatabaseError as why:
            raise self._damaged(why) from why
        return found

    def commit(self, writes: Sequence[Persist], step: Callable[[str], None]) -> None:
        """One transaction for the group; ``OSError`` if it could not be made durable.

        Rows of the log alone, as nearly always, are one statement, which is a transaction by itself: a thread asks for the
        interpreter several times a statement, and where the loop is busy each time may take long.
        """
        db = self._db
        try:
            rows = _plain_rows(writes, unheard=step is unheard)
            if rows:
                db.execute(f"INSERT OR REPLACE INTO log VALUES (?, ?){', (?, ?)' * (len(rows) // 2 - 1)}", rows)
                return
            db.execute("BEGIN IMMEDIATE")
            for write in writes:
                if write.key.startswith(LOG_PREFIX):
                    rev = int(write.key[len(LOG_PREFIX) :])
                    if write.value is None:
                        db.execute("DELETE FROM log WHERE rev = ?", (rev,))
                    else:
                        db.execute("INSERT OR REPLACE INTO log VALUES (?, ?)", (rev, write.value))
                elif write.value is None:
                    db.execute("DELETE FROM other WHERE key = ?", (write.key,))
                else:
                    db.execute("INSERT OR REPLACE INTO other VALUES (?, ?)", (write.key, write.value))
                for label in write.labels:
                    step(label)
            db.execute("COMMIT")
        except sqlite3.Error as why:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise OSError(f"cannot write {self._path}: {why}") from why

    def idle(self) -> None:
        """Fold the WAL into the file and begin it anew, if nobody reads it at the moment."""
        try:
            self._db.execute("PRAGMA wal_checkpoint(RESTART)")
        except sqlite3.OperationalError as why:
            raise OSError(f"cannot tidy {self._path}: {why}") from why

    def close(self) -> None:
        """Close the file; nothing is pending."""
        self._db.close()

    def _damaged(self, why: Exception) -> StoreError:
        return StoreError(
            f"{self._path} is not a store that can be read ({why}): restore it from a copy or start with another data directory"
        )


def _plain_rows(writes: Sequence[Persist], *, unheard: bool) -> list[int | bytes]:
    """Revision and row of each write, flat, if they are new rows of the log that nobody wants to stop at; else nothing."""
    rows: list[int | bytes] = []
    for write in writes:
        if (write.labels and not unheard) or write.value is None or not write.key.startswith(LOG_PREFIX):
            return []
        rows += (int(write.key[len(LOG_PREFIX) :]), write.value)
    return rows
