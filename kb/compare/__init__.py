"""Two sessions side by side, with the noise taken seriously."""
