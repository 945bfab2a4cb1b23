"""What proves who is who: a certificate authority, the server's certificate, tokens, and the kubeconfig that holds them.

kubectl sends no token over plain HTTP, so TLS is not an extra. All is made once in a cluster's directory and kept, so that a
kubeconfig outlives restarts; private files are 0600.
"""

import base64
import ipaddress
import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFE = timedelta(days=3650)
_ALREADY = timedelta(hours=1)

ADMIN = "elbowroom-admin"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Paths of PEM files, and the tokens by what they are for (``admin``)."""

    ca_certificate: Path
    server_certificate: Path
    server_key: Path
    tokens: dict[str, str]

    @property
    def identities(self) -> list[dict[str, Any]]:
        """The facade's ``tokens``: who bears which."""
        return [{"token": self.tokens["admin"], "user": ADMIN, "groups": ["system:masters"]}]


def make_credentials(directory: Path | str, *, hosts: Sequence[str] = ("localhost", "127.0.0.1")) -> Credentials:
    """The credentials in ``directory``, made now if they are not whole there. Called again it gives the same ones.

    The authority's key is used once and not kept: nothing else is ever signed with it.
    """
    home = Path(directory)
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = Credentials(home / "ca.crt", home / "server.crt", home / "server.key", {})
    tokens = home / "tokens.json"
    if not all(path.is_file() for path in (found.ca_certificate, found.server_certificate, found.server_key)):
        _make_certificates(found, hosts)
    if not tokens.is_file():
        _write_private(tokens, json.dumps({"admin": secrets.token_urlsafe(32)}).encode())
    return Credentials(found.ca_certificate, found.server_certificate, found.server_key, json.loads(tokens.read_bytes()))


def kubeconfig(credentials: Credentials, server: str, *, name: str = "elbowroom", namespace: str = "default") -> str:
    """A kubeconfig for the administrator at ``server`` (``https://127.0.0.1:6443``)."""
    authority = base64.b64encode(credentials.ca_certificate.read_bytes()).decode()
    text: str = yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": {"server": server, "certificate-authority-data": authority}}],
            "users": [{"name": ADMIN, "user": {"token": credentials.tokens["admin"]}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": ADMIN, "namespace": namespace}}],
            "current-context": name,
        },
        sort_keys=False,
    )
    return text


def write_kubeconfig(path: Path | str, credentials: Credentials, server: str, *, name: str = "elbowroom") -> None:
    """``kubeconfig`` as a private file, replaced atomically."""
    _write_private(Path(path), kubeconfig(credentials, server, name=name).encode())


def _make_certificates(where: Credentials, hosts: Sequence[str]) -> None:
    now = datetime.now(UTC)
    ca_key, server_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "elbowroom-ca")])
    server_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")])
    authority = (
        _builder(ca_name, ca_name, ca_key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    server = (
        _builder(server_name, ca_name, server_key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    private = server_key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    # The authority comes last: while it is missing, all is made again.
    _write_private(where.server_key, private)
    _write_private(where.server_certificate, server.public_bytes(serialization.Encoding.PEM))
    _write_private(where.ca_certificate, authority.public_bytes(serialization.Encoding.PEM))


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _ALREADY)
        .not_valid_after(now + _LIFE)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write_private(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, content)
        os.fsync(file)
    finally:
        os.close(file)
    temporary.replace(path)
