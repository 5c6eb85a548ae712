"""An MCP server that wants people to sign in, and the server where they do.

Both are the protocol's own library for Python, in either of its releases; what is ours is the store
behind them, which forgets nothing and gives every refresh token for one use only. `PORT` is the
server's port, `AUTH_PORT` the other's, `SETUP` a JSON object: see its defaults below.
"""

import asyncio
import json
import os
import secrets
import time
import warnings

warnings.simplefilter("ignore")

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizeError,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

SETUP = {
    "scopes": ["read"],  # what every request needs
    "life": 3600,  # of an access token, in seconds
    "registers": True,
    "client": None,  # one that is registered beforehand
    "answer": "yes",  # of the person at the browser
    "iss": None,  # who the answer says it is from
    "slow": 0,  # seconds before a refresh is answered
    "sse": False,  # whether the server only knows the oldest way
} | json.loads(os.environ.get("SETUP", "{}"))

port, auth_port = int(os.environ["PORT"]), int(os.environ["AUTH_PORT"])
issuer = f"http://127.0.0.1:{auth_port}"
resource = f"http://127.0.0.1:{port}/" + ("sse" if SETUP["sse"] else "mcp")
log = {"registered": 0, "codes": 0, "refreshes": 0, "reused": 0, "revoked": 0, "sleeping": 0, "asked": [], "tokens": []}


class Store:
    def __init__(self):
        self.clients, self.codes, self.access, self.refresh, self.used = {}, {}, {}, {}, set()
        if SETUP["client"]:
            client = OAuthClientInformationFull.model_validate(SETUP["client"])
            self.clients[client.client_id] = client

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client):
        log["registered"] += 1
        log["application_type"] = getattr(client, "application_type", None)
        self.clients[client.client_id] = client

    async def authorize(self, client, params):
        log["asked"].append({"scopes": params.scopes, "resource": params.resource})
        if SETUP["answer"] != "yes":
            raise AuthorizeError(error="access_denied", error_description="no \x1b[31m")
        code = secrets.token_hex(16)
        self.codes[code] = AuthorizationCode(
            code=code,
            client_id=client.client_id,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        more = {"iss": SETUP["iss"]} if SETUP["iss"] else {}
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state, **more)

    async def load_authorization_code(self, client, code):
        return self.codes.get(code)

    def give(self, client_id, scopes, resource):
        access, refresh = "access-" + secrets.token_hex(16), "refresh-" + secrets.token_hex(16)
        log["tokens"] += [access, refresh]
        self.access[access] = AccessToken(
            token=access,
            client_id=client_id,
            scopes=scopes,
            expires_at=int(time.time()) + 3600,
            resource=resource,
        )
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=scopes)
        return OAuthToken(
            access_token=access,
            token_type="Bearer",
            expires_in=SETUP["life"],
            scope=" ".join(scopes),
            refresh_token=refresh,
        )

    async def exchange_authorization_code(self, client, code):
        log["codes"] += 1
        del self.codes[code.code]
        return self.give(client.client_id, code.scopes, code.resource)

    async def load_refresh_token(self, client, token):
        if token in self.used:
            # Somebody has a copy, so nobody keeps anything.
            log["reused"] += 1
            self.access.clear()
            self.refresh.clear()
        return self.refresh.get(token)

    async def exchange_refresh_token(self, client, token, scopes):
        log["refreshes"] += 1
        self.used.add(token.token)
        del self.refresh[token.token]
        await asyncio.sleep(SETUP["slow"])
        return self.give(client.client_id, scopes, resource)

    async def load_access_token(self, token):
        return self.access.get(token)

    async def verify_token(self, token):
        return self.access.get(token)

    async def revoke_token(self, token):
        log["revoked"] += 1
        for kept in (self.access, self.refresh):
            for one in [key for key, known in kept.items() if known.client_id == token.client_id]:
                del kept[one]


store = Store()
options = ClientRegistrationOptions(enabled=SETUP["registers"], valid_scopes=["read", "write"])
routes = create_auth_routes(
    store, AnyHttpUrl(issuer), None, options, RevocationOptions(enabled=True)
)


async def show_log(request):
    return JSONResponse(log | {"live": len(store.access) + len(store.refresh)})


async def end_tokens(request):
    store.access.clear()
    return JSONResponse({})


routes += [Route("/log", show_log), Route("/end", end_tokens, methods=["POST"])]

auth = AuthSettings(
    issuer_url=AnyHttpUrl(issuer),
    resource_server_url=AnyHttpUrl(resource),
    required_scopes=SETUP["scopes"],
)
try:
    from mcp.server import MCPServer as Server
except ImportError:
    from mcp.server.fastmcp import FastMCP as Server
server = Server("trial", auth=auth, token_verifier=store)


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def write(text: str) -> str:
    """Needs more than reading."""
    return text


@server.tool()
def tell() -> str:
    """Tells what nobody should."""
    return " ".join(log["tokens"])


@server.tool()
async def sleep(seconds: float) -> str:
    """Sleeps."""
    log["sleeping"] += 1
    await asyncio.sleep(seconds)
    return "awake"


def with_more_scopes(app):
    """Refuses the tool `write` to whoever may only read, as the specification says."""

    async def guarded(scope, receive, send):
        if scope["type"] != "http" or scope["method"] != "POST":
            return await app(scope, receive, send)
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        headers = dict(scope["headers"])
        token = headers.get(b"authorization", b"").decode().removeprefix("Bearer ")
        known = store.access.get(token)
        if known and b'"name":"write"' in body and "write" not in known.scopes:
            wants = b'Bearer error="insufficient_scope", scope="write", resource_metadata="x"'
            start = {"type": "http.response.start", "status": 403}
            await send(start | {"headers": [(b"www-authenticate", wants)]})
            return await send({"type": "http.response.body", "body": b""})
        sent = False

        async def again():
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        await app(scope, again, send)

    return guarded


async def main():
    def serving(app, port):
        return uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error")).serve()

    app = server.sse_app() if SETUP["sse"] else with_more_scopes(server.streamable_http_app())
    await asyncio.gather(serving(Starlette(routes=routes), auth_port), serving(app, port))


asyncio.run(main())
