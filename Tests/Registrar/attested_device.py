# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""An app on a device that has App Attest, below a root of its own.

Prints the root in PEM as a line of JSON, then answers each line of its input
with one: `attest` makes a key and has it attested, `assert` asserts a request
with that key. Certificates, signatures and CBOR are not the registrar's code.
"""

import base64
import datetime
import hashlib
import json
import struct
import sys

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID, ObjectIdentifier

APP_ID = sys.argv[1]


def sha256(data):
    return hashlib.sha256(data).digest()


def cbor(value):
    """Text, bytes, lists and maps in their shortest form (RFC 8949)."""
    def head(kind, count):
        if count < 24:
            return bytes([kind << 5 | count])
        if count < 256:
            return bytes([kind << 5 | 24, count])
        return bytes([kind << 5 | 25]) + struct.pack(">H", count)

    if isinstance(value, str):
        return head(3, len(value)) + value.encode()
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(cbor, value))
    return head(5, len(value)) + b"".join(cbor(name) + cbor(each) for name, each in value.items())


def certificate(subject, key, issuer, issuer_key, *extensions, path_length=None, is_authority=True):
    now = datetime.datetime.now(datetime.timezone.utc)

    def name(text):
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    builder = (
        x509.CertificateBuilder().subject_name(name(subject)).issuer_name(name(issuer))
        .public_key(key.public_key()).serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1)).not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=path_length), critical=True))
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def der(certificate):
    return certificate.public_bytes(serialization.Encoding.DER)


def authenticator_data(counter):
    return sha256(APP_ID.encode()) + b"\x40" + struct.pack(">I", counter)


root_key, authority_key = (ec.generate_private_key(ec.SECP384R1()) for _ in range(2))
root = certificate("Root", root_key, "Root", root_key)
authority = certificate("Authority", authority_key, "Root", root_key, path_length=0)
print(json.dumps(root.public_bytes(serialization.Encoding.PEM).decode()), flush=True)
keys = {}
for line in sys.stdin:
    asked = json.loads(line)
    if asked["do"] == "attest":
        key = ec.generate_private_key(ec.SECP256R1())
        point = key.public_key().public_bytes(
            serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
        key_id = sha256(point)
        data = authenticator_data(0) + b"appattest" + bytes(7) + struct.pack(">H", 32) + key_id
        nonce = sha256(data + sha256(asked["challenge"].encode()))
        # A sequence of an octet string that is tagged [1].
        extension = x509.UnrecognizedExtension(
            ObjectIdentifier("1.2.840.113635.100.8.2"), b"\x30\x24\xa1\x22\x04\x20" + nonce)
        leaf = certificate("Leaf", key, "Authority", authority_key, extension, is_authority=False)
        attestation = cbor({
            "fmt": "apple-appattest", "attStmt": {"x5c": [der(leaf), der(authority)], "receipt": b"receipt"},
            "authData": data})
        last = base64.b64encode(key_id).decode()
        keys[last] = key
        answer = {"keyID": last, "attestation": base64.b64encode(attestation).decode()}
    else:
        body = hashlib.sha256(asked["body"].encode()).hexdigest()
        client_data = f"{asked['method']}\n{asked['path']}\n{asked['date']}\n{body}".encode()
        data = authenticator_data(asked["counter"])
        signature = keys[asked.get("keyID") or last].sign(sha256(data + sha256(client_data)), ec.ECDSA(hashes.SHA256()))
        answer = base64.b64encode(cbor({"signature": signature, "authenticatorData": data})).decode()
    print(json.dumps(answer), flush=True)
