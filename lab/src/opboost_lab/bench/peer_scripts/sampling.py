"""Integer noise by another library, clamped to the grid; runs in that library's environment."""

import json
import sys
import time
from importlib.metadata import version

request = json.load(sys.stdin)
lower, upper, epsilon = request["lower"], request["upper"], request["epsilon"]


def opendp():
    """Discrete Laplace noise on a vector of integers."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    kind = dp.i64 if upper > 2**31 - 1 else dp.i32
    space = dp.vector_domain(dp.atom_domain(T=kind)), dp.l1_distance(T=kind)
    release = space >> dp.m.then_laplace(scale=1 / epsilon)
    return lambda x: [min(max(y, lower), upper) for y in release(x)]


def diffprivlib():
    """The truncated geometric mechanism, one value at a time."""
    from diffprivlib.mechanisms import GeometricTruncated

    m = GeometricTruncated(epsilon=epsilon, sensitivity=1, lower=lower, upper=upper)
    return lambda x: [m.randomise(v) for v in x]


def python_dp():
    """Integer Laplace noise by Google's library, one value at a time."""
    from pydp.algorithms.numerical_mechanisms import LaplaceMechanism

    m = LaplaceMechanism(epsilon, 1.0)
    return lambda x: [min(max(int(m.add_noise(v)), lower), upper) for v in x]


release = {"opendp": opendp, "diffprivlib": diffprivlib, "python-dp": python_dp}[request["peer"]]()
x = [lower + (i * 7919) % (upper - lower + 1) for i in range(request["values"])]
seconds = []
for _ in range(request["repeats"]):
    start = time.process_time()
    release(x)
    seconds.append(time.process_time() - start)
print(json.dumps({"version": version(request["peer"]), "seconds": seconds, "values": len(x)}))
