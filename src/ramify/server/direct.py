"""Routes that answer many requests a second: FastAPI describes them, and what they take is read here.

The endpoint has two parameters, the request and a pydantic model of the body, and gives a finished response. Nothing else is
looked up for it, which takes more time than the answer itself.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, get_type_hints

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError

from ramify.server.errors import ApiError


class DirectRoute(APIRoute):
    """A route whose body is JSON."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What is called for every request."""
        endpoint: Any = self.endpoint
        kind: type[BaseModel] = next(
            hint for name, hint in get_type_hints(endpoint).items() if name != "return" and issubclass(hint, BaseModel)
        )

        async def handle(request: Request) -> Response:
            if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
                raise ApiError(415, "content-type", "the body must be JSON; send 'Content-Type: application/json'.")
            try:
                asked = kind.model_validate_json(await request.body())
            except ValidationError as error:
                raise RequestValidationError([{**error.errors()[0], "loc": ("body", *error.errors()[0]["loc"])}]) from None
            response: Response = await endpoint(request, asked)
            return response

        return handle
