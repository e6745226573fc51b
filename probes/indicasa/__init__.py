"""IndiCASA: masked sentences completed with the stereotype or its opposite."""
