"""Jobs between organisations: Arrow Flight with mutual TLS, or signed and encrypted files.

``label/`` is the label party's side.  ``label_server.py`` is the process that faces the network,
under a memory limit and without any data of the label party.  Its ``flight_server.py`` writes what
it accepts into the job's folder (``job_folder.py``), from which the training process reads.
``run_over_network.py`` runs a job over the network and ``label_bundles.py`` by files; both call
``label_job_run.py``.

``feature/`` is the feature party's side.  It connects out (``join_job.py``) and opens no port, or
exchanges files (``feature_bundles.py``).

``shared/`` is what both sides use: ``tls.py``, one bundle as a file (``bundle_file.py``), the chain
of bundles between two parties (``bundle_chain.py``), and ``job_integrity.py``, which checks a job's
files before the job is resumed.
"""

import os

# gRPC writes its own lines to standard error unless told otherwise before it is loaded.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
