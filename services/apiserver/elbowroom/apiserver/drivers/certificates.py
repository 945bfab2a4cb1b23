"""What proves who is who: a certificate authority, the server's certificate, tokens, the key that signs those of service accounts,
and the kubeconfig that holds what its user needs.

kubectl sends no token over plain HTTP, so TLS is not an extra. All is made once in a cluster's directory and kept, so that a
kubeconfig outlives restarts; private files are 0600.
"""

import base64
import csv
import ipaddress
import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    ca_key: Path
    account_key: Path
    """Signs the tokens of service accounts."""
    server_certificate: Path
    server_key: Path
    tokens: dict[str, str]

    @property
    def identities(self) -> list[dict[str, Any]]:
        """The facade's ``tokens``: who bears which."""
        return [{"token": self.tokens["admin"], "user": ADMIN, "groups": ["system:masters"]}]


def make_credentials(directory: Path | str, *, hosts: Sequence[str] = ("localhost", "127.0.0.1")) -> Credentials:
    """The credentials in ``directory``, made now if they are not whole there. Called again it gives the same ones.

    ``tokens.csv`` beside them, if somebody puts one there, holds more tokens, as upstream's ``--token-auth-file``.
    """
    home = Path(directory)
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = Credentials(home / "ca.crt", home / "ca.key", home / "sa.key", home / "server.crt", home / "server.key", {})
    tokens = home / "tokens.json"
    if not all(path.is_file() for path in (found.ca_certificate, found.ca_key, found.server_certificate, found.server_key)):
        _make_certificates(found, hosts)
    if not found.account_key.is_file():
        _write_private(found.account_key, _pem(ec.generate_private_key(ec.SECP256R1())))
    if not tokens.is_file():
        _write_private(tokens, json.dumps({"admin": secrets.token_urlsafe(32)}).encode())
    return replace(found, tokens=json.loads(tokens.read_bytes()))


def client_certificate(credentials: Credentials, user: str, groups: Sequence[str] = (), *, days: int = 365) -> tuple[bytes, bytes]:
    """A certificate for ``user`` in ``groups``, signed by the cluster's authority, and its key (PEM)."""
    authority = x509.load_pem_x509_certificate(credentials.ca_certificate.read_bytes())
    ca_key = serialization.load_pem_private_key(credentials.ca_key.read_bytes(), password=None)
    assert isinstance(ca_key, ec.EllipticCurvePrivateKey), "the cluster makes elliptic keys"
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [
            *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups),
            x509.NameAttribute(NameOID.COMMON_NAME, user),
        ]
    )
    now = datetime.now(UTC)
    certificate = (
        _builder(subject, authority.subject, key.public_key(), now, timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM), _pem(key)


def tokens_of_file(path: Path) -> list[dict[str, Any]]:
    """The identities of a token file: ``token,user,uid,"group1,group2"`` in a line; none if there is no such file."""
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        rows = [[cell.strip() for cell in row] for row in csv.reader(file) if any(row)]
    return [
        {
            "token": row[0],
            "user": row[1],
            "groups": [group.strip() for group in row[3].split(",")] if len(row) > 3 and row[3] else [],
        }
        for row in rows
        if len(row) >= 3 and row[0] and row[1]
    ]


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
    # The authority comes last: while it is missing, all is made again.
    _write_private(where.server_key, _pem(server_key))
    _write_private(where.ca_key, _pem(ca_key))
    _write_private(where.server_certificate, server.public_bytes(serialization.Encoding.PEM))
    _write_private(where.ca_certificate, authority.public_bytes(serialization.Encoding.PEM))


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, life: timedelta = _LIFE
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _ALREADY)
        .not_valid_after(now + life)
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
