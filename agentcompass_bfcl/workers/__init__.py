"""Run the shards of one run at the same time: in processes of this machine, or on a Ray cluster."""
