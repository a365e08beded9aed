"""What both sides of the transport share: TLS, bundle files, keys, logs, integrity checks."""
