"""python-dp (Google's library): integer Laplace noise a value at a time, clamped."""

import json
import sys
import time
from importlib.metadata import version

from pydp.algorithms.numerical_mechanisms import LaplaceMechanism

request = json.load(sys.stdin)
lower, upper = request["lower"], request["upper"]
m = LaplaceMechanism(request["epsilon"], 1.0)
x = [lower + (i * 7919) % (upper - lower + 1) for i in range(request["values"])]
seconds = []
for _ in range(request["repeats"]):
    start = time.process_time()
    [min(max(int(m.add_noise(v)), lower), upper) for v in x]
    seconds.append(time.process_time() - start)
print(json.dumps({"version": version("python-dp"), "seconds": seconds, "values": len(x)}))
