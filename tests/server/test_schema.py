"""The API keeps to its own description: requests made from the schema find no server error and no undocumented answer."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from ramify.server.app import make_app
from ramify.server.keys import add_key
from ramify.server.services import Services
from ramify.server.settings import ConnectionLimits, Settings

pytestmark = pytest.mark.slow

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def described(models, tmp_path_factory):
    """The description of a server with keys, and one that may do everything."""
    folder = tmp_path_factory.mktemp("described")
    key = add_key(folder / "keys.json", "fuzz", "admin")
    limits = ConnectionLimits(wrong_key_seconds=0)
    app = make_app(Services(Settings(models, keys=folder / "keys.json", reviews=folder / "r.db", connection_limits=limits)))
    made = schemathesis.openapi.from_asgi("/openapi.json", app)
    made.config.headers = {"authorization": f"Bearer {key}"}
    return made


def try_everywhere(described, check, examples):
    """Run a check with requests of every kind that the description allows, at every place."""
    options = {"deadline": None, "derandomize": True, "phases": [Phase.explicit, Phase.generate], "database": None}
    count = 0
    for operation in (found.ok() for found in described.get_all_operations()):
        for mode in schemathesis.GenerationMode:

            @given(case=operation.as_strategy(generation_mode=mode))
            @settings(max_examples=examples, suppress_health_check=list(HealthCheck), **options)
            def run(case):
                nonlocal count
                count += 1
                check(case)

            try:
                run()
            except Unsatisfiable:
                assert mode is schemathesis.GenerationMode.NEGATIVE, "there is no request that fits the description"
    return count


def test_responses_match_the_openapi_schema(described):
    def check(case):
        case.validate_response(case.call(), checks=CHECKS)

    assert try_everywhere(described, check, examples=30) > 500


def test_nobody_gets_further_without_a_key(described):
    def check(case):
        response = case.call(headers={"authorization": "Bearer wrong"})
        assert case.path == "/healthz" or response.status_code in (400, 401, 413, 422), response.text
        case.validate_response(response, checks=CHECKS)

    assert try_everywhere(described, check, examples=3) > 40
