"""The Common Expression Language, as far as rules of custom kinds speak it (``x-kubernetes-validations``).

``syntax`` reads an expression, ``types`` and ``check`` say whether it makes sense for a schema, ``evaluation`` carries it out at a
bounded cost, with the operators of ``operators`` and the functions of ``library``. All is plain Python and decides by its
arguments alone. Tried before: cel-python (no types, no bound on what an expression costs, five packages) and cel-expr-python (a
compiled runtime that knows messages and no schemas, and cannot be interrupted).
"""
