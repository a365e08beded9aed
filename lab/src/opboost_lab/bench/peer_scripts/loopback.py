"""Bytes over the loopback, of this job alone where the system lets a process have its own."""

import ctypes
import fcntl
import json
import os
import socket
import struct
import sys

NEW_USER, NEW_NET = 0x10000000, 0x40000000


def apart():
    """Move this process into a network of its own, with nothing but a loopback; True if it is."""
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
    """Bytes that the loopback has carried so far, or None."""
    try:
        with open("/proc/self/net/dev") as file:
            line = next(line for line in file if line.strip().startswith("lo:"))
    except (OSError, StopIteration):
        return None
    return int(line.split(":")[1].split()[0])


def answer(version, seconds, before):
    """Print what a job took, as the last line."""
    sent = None if before is None else carried() - before
    alone = bool(os.environ.get("OPBOOST_APART"))
    print(json.dumps({"version": version, "seconds": seconds, "bytes": sent, "apart": alone}))


if __name__ == "__main__":
    os.environ["OPBOOST_APART"] = "yes" if apart() else ""
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
