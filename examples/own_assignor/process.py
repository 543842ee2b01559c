"""An assignor as a process: a question a line on stdin, an answer a line on stdout."""

import json
import sys

for line in sys.stdin:
    asked = json.loads(line)
    every = [(topic, n) for topic, racks in asked["topics"].items() for n in range(len(racks))]
    ids = [member["id"] for member in asked["members"]]
    assigned = {each: every[index :: len(ids)] for index, each in enumerate(ids)}
    print(json.dumps({"assigned": assigned}), flush=True)
