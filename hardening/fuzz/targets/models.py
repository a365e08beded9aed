TARGETS: list = []
