"""What the opening of a log directory found and did, as values and as lines for a server's log."""

from msgspec import Struct

from coordinator_sim.storage.losses import Loss


class SegmentCut(Struct, frozen=True, kw_only=True):
    """What recovery took from a segment.

    Args:
        path: Of its file.
        position: Where the file ends now; 0 for one that was taken away whole.
        cut_bytes: From there to its former end.
        reason: What is wrong there.
        kept_as: File that holds these bytes now; empty where nobody was told that they are stored.
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
    """What the opening of a partition's folder found and did.

    Attributes:
        scanned_bytes: Of batches whose CRCs were checked.
        cuts: By offset.
        rebuilt: Segments whose indexes were missing or damaged.
        removed: Files of work that had not been finished.
        losses: Acknowledged batches that are not there.
    """

    scanned_bytes: int = 0
    cuts: list[SegmentCut] = []
    rebuilt: list[str] = []
    removed: list[str] = []
    losses: list[Loss] = []

    def lines(self) -> list[str]:
        """For a server's log; empty when there is nothing to tell."""
        found = [f"{path}: unfinished work, removed" for path in self.removed]
        found += [f"{path}: indexes made anew" for path in self.rebuilt]
        return found + [cut.line() for cut in self.cuts]


class RecoveryReport(FolderRecovery, kw_only=True):
    """What the opening of a directory found and did.

    Attributes:
        path: Of the directory.
        was_clean: Whether who had it before left in order, or nobody had it.
        partition_count: Partitions that it holds.
        elapsed_ms: That the opening took, without the journal.
        strays: Folders of partitions that no topic knows, by their new names.
        mended: What else was put right, a line each.
    """

    path: str = ""
    was_clean: bool = True
    partition_count: int = 0
    elapsed_ms: int = 0
    strays: list[str] = []
    mended: list[str] = []

    def add(self, recovery: FolderRecovery) -> None:
        """Tell of one partition."""
        self.scanned_bytes += recovery.scanned_bytes
        self.cuts += recovery.cuts
        self.rebuilt += recovery.rebuilt
        self.removed += recovery.removed
        self.losses += recovery.losses

    def lines(self, *, accept_loss: bool = True) -> list[str]:
        """For a server's log; empty when there is nothing to tell.

        Args:
            accept_loss: Whether the server goes on without what is lost; else the error that ends
                it tells of that.
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
