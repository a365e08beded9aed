"""Files on disk: written completely or not at all; archives, checked before they are unpacked."""
