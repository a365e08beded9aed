"""The feature party's side of the transport: joining a networked job, bundles, forgetting."""
