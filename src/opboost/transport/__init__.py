"""The federation between houses: Arrow Flight with mutual TLS, or sealed files.

The label party serves (``serve.py`` for a training, ``predict.py`` for new rows, ``session.py`` for
both): ``gate.py`` is the process that faces the network, under a memory limit and without any data
of the label party; it puts what it accepted into ``inbox.py``, from which the training process
reads.  A feature party connects out (``join.py``) and opens no port.  ``certs.py`` makes
certificates for trying things out, ``tls.py`` reads any.

Parties that may not connect exchange bundles: ``sealed.py`` is one file, ``conversation.py`` the
chain of them between two parties, ``encryption.py`` the keys; ``bundle_label.py`` and
``bundle_feature.py`` are the two sides.  What a party does either way is in ``label_side.py``,
``feature_side.py`` and ``intake.py``.
"""

import os

# gRPC writes its own lines to standard error unless told otherwise before it is loaded.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
