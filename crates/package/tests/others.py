"""Packs a folder in every way that Python offers: python3 others.py FOLDER OUT."""

import pathlib
import shutil
import sys
import zipfile

folder, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
paths = sorted(folder.rglob("*"))
files = [path for path in paths if path.is_file()]


class Pipe:
    """A stream that can only be written to."""

    def __init__(self, path):
        self.file = open(path, "wb")

    def write(self, data):
        return self.file.write(data)

    def flush(self):
        self.file.flush()


def name(path):
    return path.relative_to(folder).as_posix()


METHODS = {"stored": zipfile.ZIP_STORED, "deflated": zipfile.ZIP_DEFLATED}

for word, method in METHODS.items():
    with zipfile.ZipFile(out / f"write-{word}.zip", "w", method) as archive:
        for path in paths:
            archive.write(path, name(path))
    with zipfile.ZipFile(out / f"writestr-{word}.zip", "w", method) as archive:
        for path in files:
            archive.writestr(name(path), path.read_bytes())
    with zipfile.ZipFile(out / f"folders-by-hand-{word}.zip", "w", method) as archive:
        archive.writestr("src/", b"")
        for path in files:
            archive.writestr(name(path), path.read_bytes())
    with zipfile.ZipFile(out / f"opened-{word}.zip", "w", method) as archive:
        for path in files:
            with archive.open(name(path), "w") as entry:
                entry.write(path.read_bytes())
    with zipfile.ZipFile(out / f"info-{word}.zip", "w", method) as archive:
        for path in files:
            info = zipfile.ZipInfo.from_file(path, name(path), strict_timestamps=False)
            info.compress_type = method
            archive.writestr(info, path.read_bytes())
    with zipfile.ZipFile(out / f"appended-{word}.zip", "w", method) as archive:
        archive.write(files[0], name(files[0]))
    with zipfile.ZipFile(out / f"appended-{word}.zip", "a", method) as archive:
        for path in files[1:]:
            archive.write(path, name(path))

with zipfile.ZipFile(out / "level-9.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
    for path in paths:
        archive.write(path, name(path))

with zipfile.ZipFile(Pipe(out / "pipe-deflated.zip"), "w", zipfile.ZIP_DEFLATED) as archive:
    for path in paths:
        archive.write(path, name(path))

# Nothing in stored data says where it ends, so this one must be refused.
with zipfile.ZipFile(Pipe(out / "refused.zip"), "w", zipfile.ZIP_STORED) as archive:
    for path in paths:
        archive.write(path, name(path))

shutil.make_archive(str(out / "made"), "zip", folder)
