"""Custom kinds: what a CustomResourceDefinition says, and serving what it defines.

``structural`` reads a schema (pruning, defaults, the field tree), ``values`` checks objects by it, ``rules`` checks definitions,
``naming`` says what of one is accepted, and ``customs`` makes rows of the registry from it. All are functions of the stored
definition: what is served follows from the store, so it outlives the process that took the definition in.
"""
