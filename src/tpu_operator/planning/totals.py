"""How much the whole cluster wants: pods and resources, for status and for whoever reserves capacity."""
