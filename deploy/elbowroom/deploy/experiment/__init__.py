"""Experiments: the same story under each policy, so that the open questions of the designs are answered by numbers."""
