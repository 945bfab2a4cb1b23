"""What the kubelet says of a pod (RC-11 to RC-13, RC-130 to RC-147).

The document holds the fields that the kubelet owns, None for one that must be absent; others' conditions are kept.

==============  ================================================================================================================
``shown``       ``Shown``: all that a status is made from
``document``    ``document(shown)``: the status; ``rejected``: that of a pod that may not be here
``conditions``  its phase and its conditions
``patches``     what brings the API server's status to it, and whether that is worth a patch
==============  ================================================================================================================
"""
