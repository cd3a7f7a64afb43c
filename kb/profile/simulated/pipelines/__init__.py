"""Pipelines of services as queueing networks."""
