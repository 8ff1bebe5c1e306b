"""Connects a client with an API key."""

from base64 import b64encode
from typing import Any

from .client import AuthenticatedClient


def connect(base_url: str, api_key: str, password: str, **options: Any) -> AuthenticatedClient:
    """Returns a client that sends an API key and its password with each request. Options are those of the class."""
    credential = b64encode(f"{api_key}:{password}".encode()).decode()
    return AuthenticatedClient(base_url=base_url, token=credential, prefix="Basic", **options)
