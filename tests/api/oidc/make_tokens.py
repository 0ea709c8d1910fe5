#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tokens of a provider, good and forged, made by python3-jwt and python3-cryptography: JSON on stdout.

{"issuer", "client_id", "nonce", "keys": JWK set, "tokens": [{"name", "token", "good"}]}
"""
import base64, hashlib, hmac, json, time
import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

ISSUER, CLIENT, NONCE = "https://sso.example.org/realms/site", "muster", "n-0S6_WzA2Mj"
NOW = int(time.time())


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def jwk(key, kid, **more):
    kind = jwt.algorithms.RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else jwt.algorithms.ECAlgorithm
    if kind is jwt.algorithms.RSAAlgorithm:
        out = json.loads(kind.to_jwk(key.public_key()))
        out.pop("key_ops", None)
    else:  # PyJWT 2.6 has no to_jwk for it
        numbers = key.public_key().public_numbers()
        size = (key.curve.key_size + 7) // 8
        name = {"secp256r1": "P-256", "secp384r1": "P-384", "secp521r1": "P-521"}[key.curve.name]
        out = {"kty": "EC", "crv": name, "x": b64(numbers.x.to_bytes(size, "big")), "y": b64(numbers.y.to_bytes(size, "big"))}
    return {**out, "kid": kid, **more}


rsa_key = rsa.generate_private_key(65537, 2048)
rsa_pinned = rsa.generate_private_key(65537, 2048)
rsa_enc = rsa.generate_private_key(65537, 2048)
rsa_small = rsa.generate_private_key(65537, 1024)
outsider = rsa.generate_private_key(65537, 2048)
p256, p384, p521 = (ec.generate_private_key(curve()) for curve in (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1))
KEYS = [jwk(rsa_key, "r"), jwk(rsa_pinned, "pinned", alg="RS256", use="sig"), jwk(rsa_enc, "enc", use="enc"), jwk(rsa_small, "small"),
        jwk(p256, "e256"), jwk(p384, "e384"), jwk(p521, "e521"), {"kty": "oct", "k": b64(b"secret" * 8), "kid": "oct"},
        {"kty": "OKP", "crv": "Ed25519", "x": b64(b"x" * 32), "kid": "ed"}, {"kty": "RSA", "kid": "broken", "n": "!", "e": "AQAB"}, "no key"]


def claims(**change):
    out = {"iss": ISSUER, "aud": CLIENT, "sub": "248289761001", "iat": NOW, "exp": NOW + 300, "nonce": NONCE}
    out.update(change)
    return {name: value for name, value in out.items() if value is not None}


def signed(payload, key=rsa_key, alg="RS256", kid="r", **header):
    head = {**({"kid": kid} if kid else {}), **header}
    return jwt.encode(payload, key, algorithm=alg, headers=head)


def raw(header, payload, sign):
    head = header if isinstance(header, bytes) else json.dumps(header).encode()
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    what = f"{b64(head)}.{b64(body)}"
    return f"{what}.{b64(sign(what.encode()))}"


def rs256(what, key=rsa_key):
    return jwt.algorithms.RSAAlgorithm(jwt.algorithms.RSAAlgorithm.SHA256).sign(what, key)


def hs(secret):
    return lambda what: hmac.new(secret, what, hashlib.sha256).digest()


pem = rsa_key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
der = rsa_key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
modulus = rsa_key.public_key().public_numbers().n.to_bytes(256, "big")
good = signed(claims())
head, body, signature = good.split(".")
flipped = bytearray(base64.urlsafe_b64decode(signature + "=="))
flipped[7] ^= 1
der_signature = p256.sign(b"x", ec.ECDSA(__import__("cryptography.hazmat.primitives.hashes", fromlist=["SHA256"]).SHA256()))

GOOD = {
    "RS256": good,
    "RS384": signed(claims(), alg="RS384"),
    "RS512": signed(claims(), alg="RS512"),
    "PS256": signed(claims(), alg="PS256"),
    "PS512": signed(claims(), alg="PS512"),
    "ES256": signed(claims(), p256, "ES256", "e256"),
    "ES384": signed(claims(), p384, "ES384", "e384"),
    "ES512": signed(claims(), p521, "ES512", "e521"),
    "a key that says its algorithm": signed(claims(), rsa_pinned, "RS256", "pinned"),
    "no name of a key": signed(claims(), kid=None),
    "no type": raw({"alg": "RS256", "kid": "r"}, claims(), rs256),
    "type in small letters": signed(claims(), typ="jwt"),
    "audience as a list": signed(claims(aud=[CLIENT])),
    "two audiences and the party": signed(claims(aud=[CLIENT, "other"], azp=CLIENT)),
    "over within the skew": signed(claims(exp=NOW - 30)),
    "made within the skew": signed(claims(iat=NOW + 30, nbf=NOW + 30)),
    "times with fractions": signed(claims(exp=NOW + 100.5)),
    "claims that nobody knows": signed(claims(acr="1", at_hash="x", groups=["a"])),
}
BAD = {
    "alg none": raw({"alg": "none", "kid": "r"}, claims(), lambda w: b""),
    "alg None": raw({"alg": "None"}, claims(), lambda w: b""),
    "alg nOnE": raw({"alg": "nOnE", "kid": "r"}, claims(), rs256),
    "alg none with the signature of another": f"{b64(json.dumps({'alg': 'none'}).encode())}.{body}.{signature}",
    "no alg": raw({"kid": "r"}, claims(), rs256),
    "alg is a number": raw({"alg": 5, "kid": "r"}, claims(), rs256),
    "alg is empty": raw({"alg": "", "kid": "r"}, claims(), rs256),
    "HS256 by the public key, PEM": raw({"alg": "HS256", "kid": "r"}, claims(), hs(pem)),
    "HS256 by the public key, DER": raw({"alg": "HS256", "kid": "r"}, claims(), hs(der)),
    "HS256 by the modulus": raw({"alg": "HS256", "kid": "r"}, claims(), hs(modulus)),
    "HS256 by a secret of the set": raw({"alg": "HS256", "kid": "oct"}, claims(), hs(b"secret" * 8)),
    "HS256 by nothing": raw({"alg": "HS256", "kid": "r"}, claims(), hs(b"")),
    "EdDSA": raw({"alg": "EdDSA", "kid": "ed"}, claims(), lambda w: b"x" * 64),
    "another signer with the same name of a key": signed(claims(), outsider),
    "a key that is not there": signed(claims(), outsider, kid="nobody"),
    "no name, and nobody's key": signed(claims(), outsider, kid=None),
    "a key in the header": signed(claims(), outsider, kid="r", jwk=jwk(outsider, "r")),
    "a key elsewhere": signed(claims(), outsider, kid="r", jku="https://evil.example/keys", x5u="https://evil.example/x"),
    "a key for encryption": signed(claims(), rsa_enc, kid="enc"),
    "a short key": signed(claims(), rsa_small, kid="small"),
    "another algorithm than the key's": signed(claims(), rsa_pinned, "PS256", "pinned"),
    "ES256 with an RSA key's name": signed(claims(), p256, "ES256", "r"),
    "ES256 of nothing": raw({"alg": "ES256", "kid": "e256"}, claims(), lambda w: b"\0" * 64),
    "ES256 in DER": raw({"alg": "ES256", "kid": "e256"}, claims(), lambda w: der_signature),
    "ES256 cut": raw({"alg": "ES256", "kid": "e256"}, claims(), lambda w: b"\1" * 10),
    "ES384 with a P-256 key's name": signed(claims(), p384, "ES384", "e256"),
    "RS256 of nothing": raw({"alg": "RS256", "kid": "r"}, claims(), lambda w: b""),
    "RS256 of zeros": raw({"alg": "RS256", "kid": "r"}, claims(), lambda w: b"\0" * 256),
    "a bit of the signature": f"{head}.{body}.{b64(bytes(flipped))}",
    "the claims of another": f"{head}.{b64(json.dumps(claims(sub='admin')).encode())}.{signature}",
    "the header of another": f"{b64(json.dumps({'alg': 'RS256', 'kid': 'r', 'x': 1}).encode())}.{body}.{signature}",
    "crit": signed(claims(), crit=["exp"]),
    "b64": raw({"alg": "RS256", "kid": "r", "b64": True}, claims(), rs256),
    "an access token": signed(claims(), typ="at+jwt"),
    "a logout token": signed(claims(), typ="logout+jwt"),
    "two headers in one": raw(b'{"alg":"none","alg":"RS256","kid":"r"}', claims(), rs256),
    "two issuers in one": raw({"alg": "RS256", "kid": "r"}, b'{"iss":"https://evil.example",' + json.dumps(claims()).encode()[1:], rs256),
    "a header without JSON": raw(b"alg=RS256", claims(), rs256),
    "a header that is a list": raw(b'["RS256"]', claims(), rs256),
    "claims without JSON": raw({"alg": "RS256", "kid": "r"}, b"sub=admin", rs256),
    "claims that are a list": raw({"alg": "RS256", "kid": "r"}, b"[1]", rs256),
    "claims that are deep": raw({"alg": "RS256", "kid": "r"}, b'{"a":' * 3000 + b"1" + b"}" * 3000, rs256),
    "claims that are long": signed(claims(x="y" * 100_000)),
    "claims in Latin-1": raw({"alg": "RS256", "kid": "r"}, json.dumps(claims(sub="X")).encode().replace(b"X", b"\xe9"), rs256),
    "encrypted": "eyJhbGciOiJSU0EtT0FFUCJ9.a.b.c.d",
    "two parts": f"{head}.{body}",
    "four parts": f"{good}.x",
    "one part": "abc",
    "nothing": "",
    "dots": "..",
    "padded": f"{head}==.{body}.{signature}",
    "with spaces": f" {good}",
    "with a line end": f"{good}\n",
    "another issuer": signed(claims(iss="https://evil.example")),
    "the issuer with a slash": signed(claims(iss=ISSUER + "/")),
    "the issuer in capitals": signed(claims(iss=ISSUER.upper())),
    "no issuer": signed(claims(iss=None)),
    "another audience": signed(claims(aud="other")),
    "a longer audience": signed(claims(aud="muster2")),
    "audiences without us": signed(claims(aud=["a", "b"])),
    "two audiences without a party": signed(claims(aud=[CLIENT, "other"])),
    "two audiences and another party": signed(claims(aud=[CLIENT, "other"], azp="other")),
    "another party": signed(claims(azp="other")),
    "no audience": signed(claims(aud=None)),
    "an audience that is an object": raw({"alg": "RS256", "kid": "r"}, claims(aud={CLIENT: 1}), rs256),
    "over": signed(claims(exp=NOW - 120)),
    "without an end": signed(claims(exp=None)),
    "an end in words": raw({"alg": "RS256", "kid": "r"}, claims(exp="tomorrow"), rs256),
    "an end beyond all times": raw({"alg": "RS256", "kid": "r"}, claims(exp=1e300), rs256),
    "an end before all times": raw({"alg": "RS256", "kid": "r"}, claims(exp=-1), rs256),
    "not yet": signed(claims(nbf=NOW + 600)),
    "of the future": signed(claims(iat=NOW + 600)),
    "without a beginning": signed(claims(iat=None)),
    "of another login": signed(claims(nonce="another")),
    "of no login": signed(claims(nonce=None)),
    "a nonce that is a list": signed(claims(nonce=[NONCE])),
    "without a subject": signed(claims(sub=None)),
    "a subject that is a number": raw({"alg": "RS256", "kid": "r"}, claims(sub=5), rs256),
    "an empty subject": signed(claims(sub="")),
    "a subject of two lines": signed(claims(sub="a\nroot")),
    "a long subject": signed(claims(sub="a" * 300)),
}
tokens = [{"name": n, "token": t, "good": True} for n, t in GOOD.items()] + [{"name": n, "token": t, "good": False} for n, t in BAD.items()]
print(json.dumps({"issuer": ISSUER, "client_id": CLIENT, "nonce": NONCE, "keys": {"keys": KEYS}, "tokens": tokens}))
