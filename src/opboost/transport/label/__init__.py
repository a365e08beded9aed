"""The label party's side of the transport: the server, the job folder, networked jobs, bundles."""
