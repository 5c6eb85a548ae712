"""An issuer of identities, as services that build software are. It lies on demand."""

import base64
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OctKey, OKPKey, RSAKey


def make(kind, name):
    options = {"kid": name, "use": "sig"}
    if kind == "RS256":
        return RSAKey.generate_key(2048, options, private=True)
    if kind == "ES256":
        return ECKey.generate_key("P-256", options, private=True)
    return OKPKey.generate_key("Ed25519", options, private=True)


KEYS = {kind: make(kind, "first-" + kind) for kind in ("RS256", "ES256", "EdDSA")}
WEAK = RSAKey.generate_key(1024, {"kid": "weak", "use": "sig"}, private=True)
ENCRYPTING = RSAKey.generate_key(2048, {"kid": "encrypting"}, private=True)
STRANGER = make("RS256", "stranger")
STATE = {"asked": 0, "number": 0}


def encode(value):
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def identity(wish, base):
    now = int(time.time())
    STATE["number"] += 1
    claims = {
        "iss": base + wish.get("issuer", "/good"), "aud": "registry", "sub": "repo:acme/tools:ref:refs/tags/v1",
        "iat": now, "nbf": now, "exp": now + 300, "jti": "id-%d" % STATE["number"],
        "repository": "acme/tools", "ref": "refs/tags/v1", "sha": "0" * 40,
    }
    for name, value in wish.get("claims", {}).items():
        if value is None:
            claims.pop(name, None)
        elif name in ("iat", "nbf", "exp"):
            claims[name] = now + value
        else:
            claims[name] = value
    how = wish.get("how", "RS256")
    if how == "none":
        return encode({"alg": "none", "typ": "JWT"}) + "." + encode(claims) + "."
    if how == "HS256":
        # The public key as a shared secret: who checks it as one is fooled.
        secret = OctKey.import_key(KEYS["RS256"].as_pem(private=False))
        return jwt.encode({"alg": "HS256", "kid": "first-RS256"}, claims, secret, algorithms=["HS256"])
    key = {"stranger": STRANGER, "weak": WEAK, "encrypting": ENCRYPTING}.get(how) or KEYS[how]
    algorithm = {"ES256": "ES256", "EdDSA": "EdDSA"}.get(how, "RS256")
    header = {"alg": algorithm, "kid": wish.get("kid", key.kid)}
    header.update(wish.get("header", {}))
    if header["kid"] is None:
        del header["kid"]
    if "crit" in header:
        start = encode(header) + "." + encode(claims)
        good = jwt.encode({"alg": algorithm, "kid": key.kid}, claims, key, algorithms=[algorithm])
        return start + "." + good.rsplit(".", 1)[1]
    text = jwt.encode(header, claims, key, algorithms=[algorithm])
    if wish.get("changed"):
        head, body, signature = text.split(".")
        claims["repository"] = "acme/other"
        text = head + "." + encode(claims) + "." + signature
    return text


class Issuer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def say(self, value, status=200, headers=()):
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, text in headers:
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def keys(self):
        keys = list(KEYS.values()) + [WEAK, ENCRYPTING]
        told = KeySet(keys).as_dict(private=False)
        told["keys"][-1]["use"] = "enc"
        told["keys"].append({"kty": "new", "kid": "of a kind that nobody knows"})
        return told

    def do_GET(self):
        base = "http://" + self.headers["Host"]
        parts = self.path.split("/")
        name, rest = parts[1], "/".join(parts[2:])
        if name == "asked":
            return self.say({"asked": STATE["asked"]})
        if rest == ".well-known/openid-configuration":
            issuer = base + "/" + (name if name != "lies" else "good")
            place = base + "/" + name + "/keys"
            if name == "elsewhere":
                place = place.replace("127.0.0.1", "localhost")
            if name == "plain":
                place = "http://192.0.2.1/keys"
            return self.say({"issuer": issuer, "jwks_uri": place})
        STATE["asked"] += 1
        if name == "huge":
            return self.say(b" " * (5 << 20))
        if name == "many":
            return self.say({"keys": [{"kty": "oct", "k": "AAAA"}] * 5000})
        if name == "redirect":
            return self.say(b"", 302, [("Location", base + "/good/keys")])
        if name == "hang":
            time.sleep(60)
        if name == "trickle":
            self.send_response(200)
            self.send_header("Content-Length", "100000")
            self.end_headers()
            for _ in range(600):
                self.wfile.write(b" ")
                self.wfile.flush()
                time.sleep(0.1)
        if name == "junk":
            return self.say(b"<html>")
        if name == "broken":
            return self.say({"error": "down"}, 500)
        if name == "secret":
            public = KEYS["RS256"].as_pem(private=False)
            return self.say({"keys": [{"kty": "oct", "kid": "first-RS256", "k": encode(public)}]})
        return self.say(self.keys())

    def do_POST(self):
        base = "http://" + self.headers["Host"]
        wish = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
        if self.path == "/rotate":
            STATE["number"] += 1
            for kind in KEYS:
                KEYS[kind] = make(kind, "%s-%d" % (kind, STATE["number"]))
            return self.say({})
        return self.say({"identity": identity(wish, base)})


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Issuer)
server.daemon_threads = True
print("ready", flush=True)
server.serve_forever()
