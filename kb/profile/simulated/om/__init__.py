"""Offline models (.om): reader for both partition tables, and a writer in the same layout."""
