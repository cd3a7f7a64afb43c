"""The session value, its table schema, its file and its redaction."""
