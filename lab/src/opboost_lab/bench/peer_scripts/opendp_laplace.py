"""OpenDP: discrete Laplace noise on a vector of integers, clamped."""

import json
import sys
import time
from importlib.metadata import version

import opendp.prelude as dp

dp.enable_features("contrib")
request = json.load(sys.stdin)
kind = dp.i64 if request["upper"] > 2**31 - 1 else dp.i32
space = dp.vector_domain(dp.atom_domain(T=kind)), dp.l1_distance(T=kind)
release = space >> dp.m.then_laplace(scale=1 / request["epsilon"])
lower, upper = request["lower"], request["upper"]
x = [lower + (i * 7919) % (upper - lower + 1) for i in range(request["values"])]
seconds = []
for _ in range(request["repeats"]):
    start = time.process_time()
    [min(max(y, lower), upper) for y in release(x)]
    seconds.append(time.process_time() - start)
print(json.dumps({"version": version("opendp"), "seconds": seconds, "values": len(x)}))
