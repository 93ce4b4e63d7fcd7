"""How we talk to Kubernetes: client, informer, own-write consistency, queue. Knows nothing of Ray."""
