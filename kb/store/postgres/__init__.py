"""The store of a team: PostgreSQL with pgvector behind the same contract. Imported only where a URL names it."""
