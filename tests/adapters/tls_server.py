"""A server behind TLS whose certificate a private authority has signed; it speaks HTTP/1.1, and HTTP/2 where asked."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import ipaddress
import ssl
import threading
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """A certificate authority of its own, and what it signs, as PEM files in a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name, self._key = folder, name, ec.generate_private_key(ec.SECP256R1())
        self.bundle = folder / f"{name}.pem"
        self._certificate = self._sign(name, self._key.public_key(), authority=True)
        self.bundle.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, password: bytes | None = None) -> tuple[Path, Path]:
        """Return the files of a certificate for 127.0.0.1 and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        closed = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
        files = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        files[0].write_bytes(
            self._sign(name, key.public_key(), authority=False).public_bytes(serialization.Encoding.PEM)
        )
        files[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, closed))
        return files

    def _sign(self, name: str, public: Any, *, authority: bool) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self.name)])
        signer = self._key.public_key()
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(issuer)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), critical=False)
        )
        if authority:
            usage = dict.fromkeys(
                "digital_signature content_commitment key_encipherment data_encipherment key_agreement "
                "encipher_only decipher_only".split(),
                False,
            )
            builder = builder.add_extension(x509.KeyUsage(key_cert_sign=True, crl_sign=True, **usage), critical=True)
        else:
            place = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
            builder = builder.add_extension(x509.SubjectAlternativeName([place]), critical=False)
        return builder.sign(self._key, hashes.SHA256())


class TlsServer:
    """Answers every request with one body. `protocols` lists the protocol of each connection."""

    def __init__(self, files: tuple[Path, Path], body: bytes, *, clients: Path | None = None, http2: bool = False):
        self.body, self.protocols, self.requests = body, [], []
        self.delays: list[float] = []
        """Seconds to wait before the first answers; later ones come at once."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*files)
        context.set_alpn_protocols(["h2", "http/1.1"] if http2 else ["http/1.1"])
        if clients is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(clients)
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda loop, context: None)
        self._server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context))
        self.url = f"https://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._server.close()
        for task in (tasks := asyncio.all_tasks(self._loop)):
            task.cancel()
        if tasks:
            self._loop.run_until_complete(asyncio.wait(tasks))
        self._loop.run_until_complete(asyncio.sleep(0.05))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        protocol = writer.get_extra_info("ssl_object").selected_alpn_protocol() or "http/1.1"
        self.protocols.append(protocol)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await (self._frames if protocol == "h2" else self._lines)(reader, writer)
        writer.close()

    async def _lines(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            lines = head.decode().split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
            self.requests.append(
                (lines[0].split()[1], headers, await reader.readexactly(int(headers["content-length"])))
            )
            await self._wait()
            fields = ("content-type: application/json", "set-cookie: a=b", f"content-length: {len(self.body)}")
            writer.write("\r\n".join(("HTTP/1.1 200 OK", *fields, "", "")).encode() + self.body)
            await writer.drain()

    async def _frames(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from h2.config import H2Configuration
        from h2.connection import H2Connection
        from h2.events import DataReceived, RequestReceived, StreamEnded, StreamReset

        connection = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        connection.initiate_connection()
        writer.write(connection.data_to_send())
        calls: dict[int, tuple[dict[str, str], bytearray]] = {}
        answers: set[asyncio.Task[None]] = set()

        async def answer(stream: int) -> None:
            headers, data = calls.pop(stream)
            self.requests.append((headers[":path"], headers, bytes(data)))
            await self._wait()
            fields = [(":status", "200"), ("content-type", "application/json"), ("set-cookie", "a=b")]
            with contextlib.suppress(Exception):  # the stream was reset meanwhile
                connection.send_headers(stream, fields)
                connection.send_data(stream, self.body, end_stream=True)
                writer.write(connection.data_to_send())

        while data := await reader.read(65536):
            for event in connection.receive_data(data):
                if isinstance(event, RequestReceived):
                    calls[event.stream_id] = ({**dict(event.headers)}, bytearray())
                elif isinstance(event, DataReceived):
                    calls[event.stream_id][1].extend(event.data)
                    connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                elif isinstance(event, StreamEnded):
                    answers.add(asyncio.ensure_future(answer(event.stream_id)))
                elif isinstance(event, StreamReset):
                    calls.pop(event.stream_id, None)
            writer.write(connection.data_to_send())
            await writer.drain()

    async def _wait(self) -> None:
        if self.delays:
            await asyncio.sleep(self.delays.pop(0))
