"""Energy and carbon of simulated runs."""
