"""How fast is an operator for RayClusters? Measured from outside, beside a bare client, on a real API server.

Nothing here knows which operator runs: it is a command with a KUBECONFIG, and what it does is seen through a watch and
an audit log. Not part of the wheel.
"""
