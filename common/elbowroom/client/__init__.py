"""Clients for people, tests and controllers: on the bus (asyncio) and over HTTPS (synchronous)."""

from elbowroom.client.bus import ApiError, BusClient
from elbowroom.client.http import Answer, Context, HttpClient, context_of
from elbowroom.client.witness import Witness, path_of

__all__ = ["Answer", "ApiError", "BusClient", "Context", "HttpClient", "Witness", "context_of", "path_of"]
