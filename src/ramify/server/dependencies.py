"""Dependencies of the routes: services, the caller's role, the requested model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, get_type_hints

from fastapi import Depends, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError

from ramify.server.errors import ApiError
from ramify.server.json_bounds import has_more_values, is_deeper, is_wide
from ramify.server.keys import Caller
from ramify.server.model_registry import ServedModel
from ramify.server.schemas import ErrorResponse
from ramify.server.services import Services


async def get_services(request: Request) -> Services:
    """The services of this server."""
    services: Services = request.app.state.services
    return services


Parts = Annotated[Services, Depends(get_services)]


def _with_role(role: str) -> Callable[..., Any]:
    async def check(request: Request) -> Caller:
        return allowed(request, role)

    return check


def allowed(request: Request, role: str) -> Caller:
    """The caller, if the role allows it; the middleware has identified the caller."""
    caller: Caller = request.state.who
    if not caller.may(role):
        raise ApiError(403, "role", f"{caller.name!r} has the role {caller.role!r}; this needs {role!r}.")
    return caller


Reader = Annotated[Caller, Depends(_with_role("read"))]
Reviewer = Annotated[Caller, Depends(_with_role("review"))]
Admin = Annotated[Caller, Depends(_with_role("admin"))]


async def _find_model(
    services: Parts,
    caller: Reader,
    model: Annotated[str | None, Query(max_length=64, description="The model's name; the default when left out.")] = None,
) -> ServedModel:
    return services.registry.find(model)


RequestedModel = Annotated[ServedModel, Depends(_find_model)]

NodeNumbers = Annotated[str | None, Query(min_length=2, max_length=20_000)]


async def _find_with_rule(
    services: Parts,
    served: RequestedModel,
    rule: Annotated[
        str | None,
        Query(min_length=1, max_length=64, description="A decision rule that needs no fitting, instead of the model's."),
    ] = None,
    rule_params: Annotated[
        NodeNumbers,
        Query(description="Parameters of the rule, as a JSON object; costs, penalty and weights also by node name."),
    ] = None,
) -> ServedModel:
    params = parse_object("rule_params", rule_params)
    if rule is None:
        if params:
            raise ApiError(422, "rule", "rule_params are those of a rule; name it in rule.")
        return served
    return await services.slow_pool.run(services.settings.limits.seconds, served.with_rule, rule, params)


ModelWithRule = Annotated[ServedModel, Depends(_find_with_rule)]


def parse_object(name: str, given: str | None) -> dict[str, Any]:
    """A JSON object in a query parameter; empty where there is none."""
    try:
        found = {} if given is None else json.loads(given)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or is_deeper(found):
        raise ApiError(422, name.replace("_", "-"), f'{name} is not a JSON object; give one, such as {{"fruit": 2}}.')
    return found


STATUS_TEXTS = {
    400: "The request is not valid JSON in UTF-8.",
    401: "No key, or a wrong one.",
    403: "The role of the key does not allow this, or the request comes from another site or host.",
    404: "Nothing has that name or number.",
    409: "The request conflicts with the current state.",
    413: "The request exceeds a limit.",
    415: "This content type is not supported.",
    429: "Too many wrong keys came from one address.",
    422: "The request is not valid; the message says why.",
    503: "The server is busy; try again.",
    507: "The review queue is full.",
    504: "The request took too long.",
}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error responses of a route, for the OpenAPI schema; some apply to every route."""
    every = (400, 401, 403, 413, 422, 429, 503, 504)
    return {status: {"model": ErrorResponse, "description": STATUS_TEXTS[status]} for status in sorted({*every, *statuses})}


LARGE = 1 << 16  # bytes of JSON that are validated in a thread
MOST_VALUES = 1_000  # in a body of a few fields


async def read_json(request: Request, most: int) -> bytes:
    """The body; refused before it is parsed if it has more values than any honest request."""
    body = await request.body()
    if is_wide(body):
        raise ApiError(400, "no-json", "the body is not JSON in UTF-8.")
    if has_more_values(body, most):
        raise ApiError(413, "too-many-values", f"the body has more than {most:,} values; send it in parts.")
    return body


class SmallRoute(APIRoute):
    """A route of FastAPI whose body, if any, has a few fields."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler of every request."""
        handle_valid = super().get_route_handler()

        async def handle(request: Request) -> Response:
            if request.method == "POST":
                await read_json(request, MOST_VALUES)
            return await handle_valid(request)

        return handle


class DirectRoute(APIRoute):
    """A fast route whose body is JSON, for many or large requests: FastAPI only documents it.

    The endpoint takes the request and a pydantic model of the body, `asked`, and returns a finished response, because resolving
    dependencies takes longer than a prediction.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler of every request."""
        endpoint: Any = self.endpoint
        kind: type[BaseModel] = get_type_hints(endpoint)["asked"]

        async def handle(request: Request) -> Response:
            if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
                raise ApiError(415, "content-type", "the body must be JSON; send 'Content-Type: application/json'.")
            body = await read_json(request, request.app.state.services.settings.limits.body_values)
            asked = _validated(kind, body) if len(body) <= LARGE else await asyncio.to_thread(_validated, kind, body)
            response: Response = await endpoint(request, asked)
            return response

        return handle


def _validated(kind: type[BaseModel], body: bytes) -> BaseModel:
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    raise RequestValidationError([{**first, "loc": ("body", *first["loc"])}])
