"""Lists every archive of a folder as Python's zipfile sees it: one JSON object on stdout.

Each archive maps to its files with their digests, or to what was raised.
"""

import hashlib
import json
import pathlib
import sys
import zipfile


def files(path):
    with zipfile.ZipFile(path) as archive:
        listed = [info for info in archive.infolist() if not info.is_dir()]
        return sorted([info.filename, hashlib.sha256(archive.read(info)).hexdigest()] for info in listed)


def seen(path):
    try:
        return files(path)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


print(json.dumps({path.name: seen(path) for path in pathlib.Path(sys.argv[1]).iterdir()}))
