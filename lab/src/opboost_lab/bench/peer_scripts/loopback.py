"""Helpers for all scripts: a separate loopback, its bytes, two parties, and the answer."""

import ctypes
import fcntl
import json
import multiprocessing
import os
import socket
import struct
import sys
import time

NEW_USER, NEW_NET = 0x10000000, 0x40000000


def apart():
    """Move this process into a new network with only a loopback; return whether that worked."""
    uid, gid = os.getuid(), os.getgid()
    try:
        if ctypes.CDLL(None, use_errno=True).unshare(NEW_USER | NEW_NET):
            return False
        with open("/proc/self/setgroups", "w") as file:
            file.write("deny")
        for kind, own in (("uid_map", uid), ("gid_map", gid)):
            with open(f"/proc/self/{kind}", "w") as file:
                file.write(f"{own} {own} 1")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            up = struct.pack("16sh14x", b"lo", 1)
            fcntl.ioctl(control, 0x8914, up)  # SIOCSIFFLAGS, IFF_UP
    except (OSError, AttributeError):
        return False
    return True


def carried():
    """Return the bytes that the loopback has carried so far, or None."""
    try:
        with open("/proc/self/net/dev") as file:
            line = next(line for line in file if line.strip().startswith("lo:"))
    except (OSError, StopIteration):
        return None
    return int(line.split(":")[1].split()[0])


def now():
    """Return the time, and the bytes carried so far."""
    return time.perf_counter(), carried()


def ports(count):
    """Return free ports."""
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return found


def two_parties(work, request, *more):
    """Run ``work(rank, request, trained, *more)`` as two processes.

    Each calls ``trained(now())`` once it has its model; return the later of the two.
    """
    context = multiprocessing.get_context("fork")
    ended = context.SimpleQueue()
    parties = [context.Process(target=work, args=(r, request, ended.put, *more)) for r in (0, 1)]
    for party in parties:
        party.start()
    while any(party.exitcode is None for party in parties):
        if any(party.exitcode for party in parties):
            os._exit(1)  # the other one would wait forever; Family.end kills it
        time.sleep(0.01)
    if any(party.exitcode for party in parties):
        sys.exit(1)
    return max(ended.get() for _ in parties)


def in_one_process(version, train):
    """Time ``train(request, data)``, which returns a function that predicts rows, and answer."""
    import numpy as np

    request = json.load(sys.stdin)
    data = np.load(request["data"])
    before = now()
    predict = train(request, data)
    after = now()
    np.save(request["out"], predict(data["X_test"]))
    answer(version, before, after)


def answer(version, before, after):
    """Print the figures of a job as the last line."""
    sent = None if before[1] is None else after[1] - before[1]
    alone = bool(os.environ.get("OPBOOST_APART"))
    seconds = after[0] - before[0]
    found = {"version": version, "seconds": seconds, "bytes": sent, "apart": alone}
    print(json.dumps(found))


if __name__ == "__main__":
    os.environ["OPBOOST_APART"] = "yes" if apart() else ""
    os.environ["OMP_WAIT_POLICY"] = "passive"  # spinning threads take cores from each other
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
