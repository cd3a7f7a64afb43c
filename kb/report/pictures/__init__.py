"""Session tables turned into the facts that reports draw and print."""
