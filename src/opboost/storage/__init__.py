"""Files on disk: written whole or not at all, and archives checked before they are unpacked."""
