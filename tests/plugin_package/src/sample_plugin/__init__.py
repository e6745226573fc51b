"""A plugin as a third party would write it."""
