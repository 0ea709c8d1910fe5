#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A provider that misbehaves, each below a path of its own: https://localhost:PORT/HOW. Prints {"port"} when it answers.

  bad_provider.py CERT KEY

HOW: fine, html, large, deep, elsewhere, other-issuer, plain-http, slow, refuses, keys-html. The token that /HOW/token answers has the
claims that the code says (JSON in base64url); "_alg" and "_status" in them change how. Tokens are made by python3-jwt. What was
asked is at /log.
"""
import base64, http.server, json, ssl, sys, time, urllib.parse
import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

key = rsa.generate_private_key(65537, 2048)
jwk = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
jwk.pop("key_ops", None)
jwk["kid"] = "k"
log = []


class Provider(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def say(self, status, body, kind="application/json", **headers):
        data = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(data)
        except OSError:
            pass

    def do_GET(self):
        self.serve("")

    def do_POST(self):
        self.serve(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())

    def serve(self, form):
        if self.path == "/log":
            return self.say(200, log)
        log.append({"path": self.path, "form": dict(urllib.parse.parse_qsl(form)), "authorization": self.headers.get("Authorization", "")})
        _, how, what = self.path.split("/", 2)
        base = f"https://localhost:{server.server_address[1]}/{how}"
        if what == ".well-known/openid-configuration":
            return self.configuration(how, base)
        if what == "keys":
            return self.say(200, "<html>", "text/html") if how == "keys-html" else self.say(200, {"keys": [jwk]})
        if what == "token":
            return self.token(urllib.parse.parse_qs(form).get("code", ["e30"])[0])
        if what == "device":
            return self.say(200, {"device_code": "d", "user_code": "\x1b[2JABCD", "verification_uri": "javascript:alert(1)"})
        self.say(404, {"error": "not_found"})

    def configuration(self, how, base):
        body = {"issuer": base, "authorization_endpoint": base + "/auth", "token_endpoint": base + "/token", "jwks_uri": base + "/keys",
                "device_authorization_endpoint": base + "/device"}
        if how == "html":
            return self.say(200, "<html>welcome to the hotel's network", "text/html")
        if how == "large":
            return self.say(200, json.dumps({**body, "x": "y" * (10 << 20)}))
        if how == "deep":
            return self.say(200, '{"a":' * 20000 + "1" + "}" * 20000)
        if how == "elsewhere":
            return self.say(302, "", Location="https://evil.example/.well-known/openid-configuration")
        if how == "refuses":
            return self.say(503, {"error": "temporarily_unavailable", "error_description": "\x1b]0;evil\x07maintenance"})
        if how == "slow":
            time.sleep(25)
        if how == "other-issuer":
            body["issuer"] = "https://evil.example"
        if how == "plain-http":
            body["token_endpoint"] = "http://localhost/token"
        self.say(200, body)

    def token(self, code):
        claims = json.loads(base64.urlsafe_b64decode(code + "=" * (-len(code) % 4)))
        status, alg = claims.pop("_status", 200), claims.pop("_alg", "RS256")
        if status != 200:
            return self.say(status, {"error": "invalid_grant", "error_description": "no such code"})
        if alg == "none":
            token = jwt.encode(claims, None, algorithm="none")
        else:
            token = jwt.encode(claims, key, algorithm=alg, headers={"kid": "k"})
        self.say(200, {"id_token": token, "access_token": "a", "token_type": "Bearer"})

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def get_request(self):  # a handshake that fails is the client's affair
        connection, address = super().get_request()
        return tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    def handle_error(self, *_):
        pass


tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain(sys.argv[1], sys.argv[2])
server = Server(("127.0.0.1", 0), Provider)
print(json.dumps({"port": server.server_address[1]}), flush=True)
server.serve_forever()  # ends with whoever started it
