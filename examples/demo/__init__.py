"""The main job on real data: what pickle and quickpickle make of the same objects, side by side."""
