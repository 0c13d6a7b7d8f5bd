"""The version of the distribution ``agentd-sdk``."""

__version__ = "0.1.0"
