"""What users write: models of ray.io/v1, status, labels and names, quantities, the CRD."""
