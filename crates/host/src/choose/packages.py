import json
import sys
from importlib import metadata

folders = sys.argv[2:] + sys.path
found = {}
for name in json.loads(sys.argv[1]):
    first = next(iter(metadata.distributions(name=name, path=folders)), None)
    found[name] = first and first.version
print(json.dumps({"packages": found, "folders": [one for one in folders if one]}))
