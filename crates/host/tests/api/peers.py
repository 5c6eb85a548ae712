"""Servers we did not write, on one port: httpbin, and beneath /oauth a provider made of Authlib.

Prints its port, and ends when its input does.
"""

import os
import sys
import threading

# A provider wants TLS, except where somebody says that this is a test.
os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"

from authlib.integrations.flask_oauth2 import AuthorizationServer, ResourceProtector
from authlib.oauth2.rfc6749 import ClientMixin, TokenMixin, grants
from authlib.oauth2.rfc6750 import BearerTokenValidator
from flask import Flask, jsonify
from httpbin import app as httpbin
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.serving import make_server

tokens = {}


class Client(ClientMixin):
    def __init__(self, name, secret, method):
        self.name, self.secret, self.method = name, secret, method

    def get_client_id(self):
        return self.name

    def get_allowed_scope(self, scope):
        return scope

    def check_client_secret(self, secret):
        return self.secret == secret

    def check_endpoint_auth_method(self, method, endpoint):
        return self.method == method

    def check_grant_type(self, grant):
        return grant in ("client_credentials", "refresh_token")


class Token(TokenMixin):
    def __init__(self, client, fields):
        self.client, self.fields = client, fields

    def check_client(self, client):
        return self.client is client

    def get_scope(self):
        return self.fields.get("scope", "")

    def get_expires_in(self):
        return self.fields["expires_in"]

    def is_expired(self):
        return False

    def is_revoked(self):
        return False


class Refresh(grants.RefreshTokenGrant):
    INCLUDE_NEW_REFRESH_TOKEN = True
    TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_basic", "client_secret_post"]

    def authenticate_refresh_token(self, token):
        return Token(clients["basic"], {"scope": "read", "expires_in": 3600}) if token == "first" else None

    def authenticate_user(self, token):
        return "the owner"

    def revoke_old_credential(self, token):
        pass


class Credentials(grants.ClientCredentialsGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_basic", "client_secret_post"]


class Validator(BearerTokenValidator):
    def authenticate_token(self, token):
        return tokens.get(token)


clients = {
    "basic": Client("basic", "b s3cret:&", "client_secret_basic"),
    "post": Client("post", "p s3cret", "client_secret_post"),
}
oauth = Flask("oauth")
server = AuthorizationServer(
    oauth,
    query_client=clients.get,
    save_token=lambda fields, request: tokens.update({fields["access_token"]: Token(request.client, fields)}),
)
server.register_grant(Credentials)
server.register_grant(Refresh)
protect = ResourceProtector()
protect.register_token_validator(Validator())


@oauth.post("/token")
def token():
    return server.create_token_response()


@oauth.get("/private")
@protect("read")
def private():
    return jsonify(message="private")


both = DispatcherMiddleware(httpbin, {"/oauth": oauth})
running = make_server("127.0.0.1", 0, both, threaded=True)
threading.Thread(target=running.serve_forever, daemon=True).start()
print(running.port, flush=True)
sys.stdin.read()
