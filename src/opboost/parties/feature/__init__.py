"""The feature party: finds common rows, desensitises them once, and keeps what it sends."""
