"""The kubelet's CPU, memory and topology managers.

The pure part, from the bottom up; nothing here reads a clock, a disk or a gate:

=============  =================================================================================================================
``cpuset``     ``CPUSet``: an immutable set that prints as ``0-3,8``; ``|``, ``&``, ``-``, ``<=`` (subset), ``len``, iteration
``topology``   ``Topology.regular(sockets=2, cores_per_numa=4, threads_per_core=2)`` or ``Topology({cpu: Place(...)})``
``options``    ``static_options(given, gates)``: the options of cpuManagerPolicyOptions, or ``OptionError`` in upstream's words
``packing``    ``take_by_topology(topology, available, count, options, keep)``: which CPUs
``hints``      ``Hint`` and ``merge``: what the topology manager makes of the providers' hints
``state``      ``CPUState`` (a value) and its file: ``encode``, ``decode``
``static``     ``StaticPolicy``: what is given to whom
``memory``     ``StaticMemory`` and ``MemoryState``: the same for memory, with its file
``partition``  how a pod's own CPUs and memory are shared out among its containers
``settings``   ``Settings``: how all of them are configured
``attempt``    ``Attempt``: the topology manager's admission of one pod, thrown away if anything is refused
``manager``    ``Managers``: all of it for one kubelet; admission, giving back, files, what is shown
=============  =================================================================================================================

A decision takes the state and gives the next one, so that it can be tried, printed and thrown away::

    policy = StaticPolicy(Topology.regular(cores_per_numa=4, threads_per_core=2), reserved=CPUSet.of(0, 4))
    match policy.allocate(policy.initial, "uid", "container", 2):
        case Granted(state, cpus): ...        # cpus prints as 1,5
        case Refused(message, reason): ...

For a resize, ``keep`` names the CPUs that the answer must hold: what the container has when it grows, what it was first given when
it shrinks. ``take_by_topology`` returns a set of ``count`` CPUs, ``keep`` included; groups that hold kept CPUs come first and count
as whole if nobody else has a CPU in them (XC-49). ``StaticPolicy.resized(state, uid, container, count, original, affinity)`` puts
both directions together and returns the state with the new set in force; ``select`` is the choice alone, for whoever delays it.
``hints(available, reusable, count)`` with ``reusable`` = the current set gives the masks for a grow (XC-51). ``CPUState.originals``
is kept in the file and dropped with the container; who admits a container that may be resized puts it there (``with_original``).
"""
