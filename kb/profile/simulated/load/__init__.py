"""Requests over time: arrivals, and a server that batches them."""
