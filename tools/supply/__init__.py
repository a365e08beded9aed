"""What OpBoost is built from and shipped as: locks, the audit of them, the bill of materials."""
