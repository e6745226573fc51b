"""Any table of outcomes, measured as a study."""
