"""Throw-away keys and certificates: a CA, a serving certificate for the loopback address, a service-account key."""

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from devcluster.ports import LOOPBACK

LIFETIME = dt.timedelta(days=30)
CLOCK_SKEW = dt.timedelta(hours=1)
HOST_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


@dataclass(frozen=True, slots=True)
class Certificates:
    """Paths of PEM files. `ca` signs `serving`; service-account tokens are signed with `account_key`."""

    ca: Path
    serving: Path
    serving_key: Path
    account_key: Path
    account_public: Path


def write_certificates(folder: Path) -> Certificates:
    """Make fresh keys and certificates in `folder`."""
    paths = Certificates(
        ca=folder / "ca.crt",
        serving=folder / "apiserver.crt",
        serving_key=folder / "apiserver.key",
        account_key=folder / "service-account.key",
        account_public=folder / "service-account.pub",
    )
    ca_key, serving_key, account_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    ca = _ca(ca_key)
    paths.ca.write_bytes(_pem(ca))
    paths.serving.write_bytes(_pem(_serving(serving_key, ca, ca_key)))
    _write_key(paths.serving_key, serving_key)
    _write_key(paths.account_key, account_key)
    paths.account_public.write_bytes(
        account_key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    return paths


def _ca(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = _name("devcluster-ca")
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = _builder(name, name, key.public_key())
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(usage, critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    return builder.sign(key, hashes.SHA256())


def _serving(
    key: ec.EllipticCurvePrivateKey, ca: x509.Certificate, ca_key: ec.EllipticCurvePrivateKey
) -> x509.Certificate:
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in HOST_NAMES]
    names.append(x509.IPAddress(ipaddress.ip_address(LOOPBACK)))
    authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    builder = _builder(_name("kube-apiserver"), ca.subject, key.public_key())
    builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    builder = builder.add_extension(authority, critical=False)
    return builder.sign(ca_key, hashes.SHA256())


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - CLOCK_SKEW).not_valid_after(now + LIFETIME)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
