"""Kills, full disks, damaged files, broken connections: a job must survive each."""
