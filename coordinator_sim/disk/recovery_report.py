"""Report of opening a log directory, as values and as lines for a server's log."""

from msgspec import Struct

from coordinator_sim.disk.losses import Loss


class SegmentCut(Struct, frozen=True, kw_only=True):
    """Bytes that recovery cut off a segment or a journal.

    Args:
        path: Path of the file.
        position: New end of the file; 0 for a file that was set aside whole.
        cut_bytes: Number of bytes from there to the former end.
        reason: What is wrong at the position.
        kept_as: File that has these bytes now; empty if they were never acknowledged.
    """

    path: str
    position: int
    cut_bytes: int
    reason: str
    kept_as: str = ""

    def line(self) -> str:
        """One line for a log."""
        fate = f"kept in {self.kept_as}" if self.kept_as else "gone"
        return (
            f"{self.path}: {self.reason}; cut at byte {self.position}, {self.cut_bytes} bytes "
            f"are {fate}"
        )


class FolderRecovery(Struct, kw_only=True):
    """Report of opening a partition's folder.

    Attributes:
        scanned_bytes: Bytes of batches whose CRCs were checked.
        cuts: Cuts in order of offsets.
        rebuilt: Segments whose indexes were missing or damaged.
        removed: Files of unfinished work.
        losses: Missing acknowledged batches.
    """

    scanned_bytes: int = 0
    cuts: list[SegmentCut] = []
    rebuilt: list[str] = []
    removed: list[str] = []
    losses: list[Loss] = []

    def lines(self) -> list[str]:
        """Lines for a server's log; empty when there is nothing to report."""
        found = [f"{path}: unfinished work, removed" for path in self.removed]
        found += [f"{path}: indexes made anew" for path in self.rebuilt]
        return found + [cut.line() for cut in self.cuts]


class RecoveryReport(FolderRecovery, kw_only=True):
    """Report of opening a directory.

    Attributes:
        path: Path of the directory.
        was_clean: Whether the last shutdown was clean, or the directory is new.
        partition_count: Number of partitions.
        elapsed_ms: Time of the opening, without the journal.
        strays: New names of the folders of partitions that no topic knows.
        mended: Other repairs, one line each.
    """

    path: str = ""
    was_clean: bool = True
    partition_count: int = 0
    elapsed_ms: int = 0
    strays: list[str] = []
    mended: list[str] = []

    def add(self, recovery: FolderRecovery) -> None:
        """Add the report of one partition."""
        self.scanned_bytes += recovery.scanned_bytes
        self.cuts += recovery.cuts
        self.rebuilt += recovery.rebuilt
        self.removed += recovery.removed
        self.losses += recovery.losses

    def lines(self, *, accept_loss: bool = True) -> list[str]:
        """Lines for a server's log; empty when there is nothing to report.

        Args:
            accept_loss: Whether the server goes on without lost data; else the error that ends it
                lists the losses.
        """
        found = []
        if not self.was_clean:
            found.append(
                f"{self.path}: not left in order; {self.partition_count} partitions, "
                f"{self.scanned_bytes} bytes checked in {self.elapsed_ms} ms"
            )
        if accept_loss:
            found += [f"lost: {loss.line()}" for loss in self.losses]
        found += [f"{path}: kept under this name, no topic knows it" for path in self.strays]
        return found + self.mended + super().lines()
