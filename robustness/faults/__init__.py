"""Kills, full disks, damaged files and broken connections, each of which a job must survive."""
