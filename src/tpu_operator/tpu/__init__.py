"""What the hardware means: generations, topologies, slice shapes, worker environment."""
