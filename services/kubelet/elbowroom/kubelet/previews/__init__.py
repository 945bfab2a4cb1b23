"""Designs that no release has: resizing exclusive CPUs (KEP-5554) and the delay of a scale down (KEP-6122).

Pure, on top of ``elbowroom.kubelet.managers``: a decision takes the state of the CPU manager and gives the next one.

=============  =================================================================================================================
``exclusive``  what a resize makes of a container's CPUs: which it keeps, gains and gives up, or why it can't be
``delay``      CPUs that are given up later: who waits for what, what a tick completes, what a restart finds
=============  =================================================================================================================

Which of them a node has is its knob ``preview``: ``none`` (a released kubelet), ``5554``, ``6122A`` (one delay for the node, which
is forgotten when the kubelet restarts) or ``6122B`` (each pod its own, kept in the CPU manager's file). The latter two include the
first.
"""
