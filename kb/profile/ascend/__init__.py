"""Reader of Ascend profiler output."""
