"""What of a shard's folder travels between the machines of a cluster, and how it is unpacked without trusting it."""

from __future__ import annotations

import io
import tarfile
import zlib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from agentcompass_bfcl.errors import WorkerError

_BROKEN = (tarfile.TarError, zlib.error, EOFError, OSError)


def pack(folder: Path, parts: Iterable[Path]) -> bytes:
    """Pack files and folders that lie in ``folder``, with all below them."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz", compresslevel=1) as archive:
        for part in parts:
            archive.add(part, arcname=part.relative_to(folder).as_posix())
    return content.getvalue()


def unpack(content: bytes, folder: Path) -> None:
    """Unpack below a folder. Raises ``WorkerError`` for anything but plain files and folders inside it."""
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
            for member in archive:
                _refuse_what_leads_out(member)
                archive.extract(member, folder, filter="data")
    except _BROKEN as error:
        raise WorkerError(f"what a shard brought cannot be unpacked into {folder}: {error}") from error


def _refuse_what_leads_out(member: tarfile.TarInfo) -> None:
    # The filter alone would make an absolute path a relative one, and follow links that stay inside.
    if not (member.isfile() or member.isdir()):
        raise WorkerError(f"a shard brought {member.name[:80]!a}, which is no file and no folder")
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts:
        raise WorkerError(f"a shard brought {member.name[:80]!a}, which lies outside its folder")
