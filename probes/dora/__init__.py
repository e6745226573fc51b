"""BiasDora: discovery of associations in texts and images, without a list of associations."""
