"""The kinds beside pods: what a creator may say, what stands by default, what is valid.

``base`` has the row of the registry, ``checks`` what several kinds ask, ``table`` all rows together; the others are the kinds.
"""
