"""Who comes in: what every route asks for before it begins."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, get_type_hints

from fastapi import Depends, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError

from ramify.server.errors import ApiError
from ramify.server.keys import Caller
from ramify.server.model_registry import Served
from ramify.server.schemas import ErrorAnswer
from ramify.server.services import Services


async def get_services(request: Request) -> Services:
    """The parts of this server."""
    services: Services = request.app.state.services
    return services


Parts = Annotated[Services, Depends(get_services)]


def _with_role(role: str) -> Callable[..., Any]:
    async def check(request: Request) -> Caller:
        return allowed(request, role)

    return check


def allowed(request: Request, role: str) -> Caller:
    """Whoever asks, if they have a role; the guard has found out who they are."""
    caller: Caller = request.state.who
    if not caller.may(role):
        raise ApiError(403, "role", f"{caller.name!r} has the role {caller.role!r}; this needs {role!r}.")
    return caller


Reader = Annotated[Caller, Depends(_with_role("read"))]
Reviewer = Annotated[Caller, Depends(_with_role("review"))]
Admin = Annotated[Caller, Depends(_with_role("admin"))]


async def _asked_model(
    services: Parts,
    caller: Reader,
    model: Annotated[str | None, Query(max_length=64, description="The model's name; the default when left out.")] = None,
) -> Served:
    return services.shelf.find(model)


AskedModel = Annotated[Served, Depends(_asked_model)]

SAID = {
    400: "The request cannot be read: no JSON, or not in UTF-8.",
    401: "No key, or a wrong one.",
    403: "The key's role does not allow this, or the request comes from a foreign page or host.",
    404: "There is nothing of that name or number.",
    409: "It does not fit what is there.",
    413: "More than is allowed.",
    415: "A kind of content that is not taken.",
    422: "Something that does not fit: the message says what.",
    503: "The server is busy; try again.",
    504: "There was no answer in time.",
}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What a route may answer beside its result, for the documentation; the first few apply everywhere."""
    every = (400, 401, 403, 413, 422, 503, 504)
    return {status: {"model": ErrorAnswer, "description": SAID[status]} for status in sorted({*every, *statuses})}


# --------------------------------------------------------------------------------------------------------------
# Routes that answer many requests a second: FastAPI describes them, and what they take is read here.
#
# The endpoint has two parameters, the request and a pydantic model of the body, and gives a finished response. Nothing else is
# looked up for it, which takes more time than the answer itself.


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
