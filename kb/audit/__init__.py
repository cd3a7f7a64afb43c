"""The claim audit: stated figures checked against each other, against arithmetic and against the chip they name."""
