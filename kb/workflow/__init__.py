"""One file a job: gather, call, persist."""
