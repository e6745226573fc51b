"""Fine-tune a sentence encoder so that stereotypes and anti-stereotypes of one context lie apart.

Source: Santhosh et al. (2025).
"""
