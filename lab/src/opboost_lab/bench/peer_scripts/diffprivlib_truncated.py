"""diffprivlib: the truncated geometric mechanism, a value at a time."""

import json
import sys
import time
from importlib.metadata import version

from diffprivlib.mechanisms import GeometricTruncated

request = json.load(sys.stdin)
lower, upper = request["lower"], request["upper"]
m = GeometricTruncated(epsilon=request["epsilon"], sensitivity=1, lower=lower, upper=upper)
x = [lower + (i * 7919) % (upper - lower + 1) for i in range(request["values"])]
seconds = []
for _ in range(request["repeats"]):
    start = time.process_time()
    [m.randomise(v) for v in x]
    seconds.append(time.process_time() - start)
print(json.dumps({"version": version("diffprivlib"), "seconds": seconds, "values": len(x)}))
