"""The feature party: finds common rows, desensitises once, keeps what it sends."""
