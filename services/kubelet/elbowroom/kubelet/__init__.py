"""The kubelet: admission, allocation, pending queue, actuation, status, checkpoints.

``machine`` routes. What it routes to says in a ``Services`` what it needs of the others; decisions are pure and in modules of their
own.

A node's:

===================  ===========================================================================================================
``boot``             a life begins: the pods of the one before are taken back
``intake``           pods as the API server and the folder of manifests (``staticpods``, ``manifests``) give them; ``roster``
``doorkeeper``       pods are let in, turned away and pushed out, as ``admission`` and ``features`` decide
``resizes``          the resizes that wait (``pending``), and what is done about each verdict of ``allocation``
``inventory``        what the runtime has, listed and heard of (``feed``)
``podstatuses``      what is told of each pod (``status``, ``publisher``); ``events`` (``recorder``)
``nodewatch``        what the Node says (``config``, ``machinestate``) and what is said of it (``keeper``, ``node``); ``shutdown``
``rounds``           of the CPU manager (``managers``, ``previews``)
``alarms``           one timer for all that is to be looked at at some time; ``deadlines``
``proxy``            what others ask: ``metrics`` (``tallies``), cgroups, ``files`` (``downward``)
``checkpoint``       what must not be forgotten
===================  ===========================================================================================================

A pod's, which ``worker`` drives, as ``lifecycle`` decides:

===================  ===========================================================================================================
``account``          what it was allocated and given, and what it counts for
``runtimecall``      the one call in flight
``podsandbox``       its sandbox
``containers``       its containers; ``crashloop`` (those that end again and again), ``ending`` (how long an end may take)
``resizer``          its resize step, as ``actuation`` plans it; ``progress`` (is it done?)
``pinning``          its containers on the CPUs that they are to have
===================  ===========================================================================================================
"""
