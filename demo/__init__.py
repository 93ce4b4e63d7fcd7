"""The main job to watch: slices forming, healing, going and coming on a real local API server."""
