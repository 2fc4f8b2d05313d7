"""Statistics of judge models: their variance, position bias, and agreement with people. Pure."""
