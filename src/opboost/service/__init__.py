"""The federation over a network: Arrow Flight with mutual TLS.

The label party serves (``serve.py``): ``gate.py`` is the process that faces the network, under a
memory limit and without any data of the label party; it puts what it accepted into ``inbox.py``,
from which the training process reads.  A feature party connects out (``join.py``) and opens no
port.  ``certs.py`` makes certificates for trying things out, ``tls.py`` reads any.
"""

import os

# gRPC writes its own lines to standard error unless told otherwise before it is loaded.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
