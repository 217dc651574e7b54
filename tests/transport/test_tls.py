"""TLS: whom we trust, whom we show ourselves to, and what a failed handshake says."""

from __future__ import annotations

import gc
import shutil
import socket
import ssl
import struct
import subprocess
import time

import pytest
import trustme

from protolink_sync import CancelToken
from protolink_sync.errors import (
    CallCancelledError,
    TLSVerificationError,
    TransportConnectionError,
    TransportProtocolError,
    TransportTimeoutError,
)
from protolink_sync.models import Message, Task
from protolink_sync.security import TLSConfig
from protolink_sync.specs import TASK_REQUEST
from protolink_sync.transport import HTTPTransport, TransportConfig
from protolink_sync.transport._tls import client_context
from tests.transport.scenes import (
    ASK,
    CLOSE,
    HOLD,
    RST,
    Calling,
    about,
    answering,
    check_whole,
    connections_to,
    failed,
    in_fresh_process,
    send,
    serving,
    transport,
    wait_until,
)

CA_VARIABLES = ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"]


@pytest.fixture(scope="module")
def other_ca(tmp_path_factory) -> str:
    """An authority that has nothing to do with the peer."""
    path = tmp_path_factory.mktemp("other") / "ca.pem"
    trustme.CA().cert_pem.write_to_path(path)
    return str(path)


# ---- whom we trust -----------------------------------------------------------------------------


def test_a_peer_of_the_given_authority_is_called(tls_server, tls_client):
    with answering(tls=tls_server) as server, transport(server, tls=tls_client) as client:
        assert client.send(ASK, None, {}) == {"ok": True}
        assert client.send(ASK, None, {}) == {"ok": True}
        assert len(server.connections) == 1


def test_a_peer_that_nobody_vouches_for_gets_nothing(tls_server):
    with answering(tls=tls_server) as server, transport(server, credentials="s3cr3t") as client:
        error = failed(client)

        assert type(error) is TLSVerificationError
        assert isinstance(error, TransportConnectionError)
        assert not error.retryable
        assert error.phase == "tls"
        check_whole(error, server, "certificate of 127.0.0.1", "TLSConfig(cafile=")
        assert not server.requests
        assert server.connections[0].received == b""


def test_a_peer_of_another_authority_gets_nothing(tls_server, other_ca):
    with answering(tls=tls_server) as server:
        with transport(server, tls=TLSConfig(cafile=other_ca)) as client:
            assert type(failed(client)) is TLSVerificationError

        assert not server.requests


def test_a_certificate_of_another_host_is_refused(tls_server, tls_client):
    with answering(tls=tls_server, host="127.0.0.2") as server:
        with transport(server, tls=tls_client) as client:
            error = failed(client)

        assert type(error) is TLSVerificationError
        assert not error.retryable
        check_whole(error, server, "127.0.0.2")
        assert not server.requests


def test_a_certificate_of_another_host_is_accepted_if_the_caller_says_so(tls_server, tls_files):
    tls = TLSConfig(cafile=tls_files.ca, check_hostname=False)

    with (
        answering(tls=tls_server, host="127.0.0.2") as server,
        transport(server, tls=tls) as client,
    ):
        assert client.send(ASK, None, {}) == {"ok": True}


def test_a_host_name_that_is_not_checked_makes_nobody_trusted(tls_server):
    tls = TLSConfig(check_hostname=False)

    with answering(tls=tls_server) as server, transport(server, tls=tls) as client:
        assert type(failed(client)) is TLSVerificationError


def test_one_transport_that_does_not_check_names_leaves_the_others_as_they_are(
    tls_server, tls_files, tls_client
):
    """urllib3 writes what it is told into the context, which transports share."""
    loose = TLSConfig(cafile=tls_files.ca, check_hostname=False)

    with (
        answering(tls=tls_server, host="127.0.0.2") as server,
        transport(server, tls=tls_client) as strict,
        transport(server, tls=loose) as other,
    ):
        assert type(failed(strict)) is TLSVerificationError
        other.send(ASK, None, {})
        assert type(failed(strict)) is TLSVerificationError


def test_a_name_in_the_certificate_is_enough(tls_server, tls_client):
    with answering(tls=tls_server) as server, transport(tls=tls_client) as client:
        assert client.send(ASK, f"https://localhost:{server.port}", {}) == {"ok": True}


# ---- the environment ---------------------------------------------------------------------------


@pytest.mark.parametrize("variable", CA_VARIABLES)
def test_the_environment_names_authorities(variable, tls_server, tls_files, monkeypatch):
    monkeypatch.setenv(variable, tls_files.ca)

    with answering(tls=tls_server) as server, transport(server) as client:
        assert client.send(ASK, None, {}) == {"ok": True}


@pytest.mark.parametrize("first", range(2))
def test_the_first_variable_that_is_set_counts(first, tls_server, tls_files, other_ca, monkeypatch):
    monkeypatch.setenv(CA_VARIABLES[first], other_ca)
    for later in CA_VARIABLES[first + 1 :]:
        monkeypatch.setenv(later, tls_files.ca)

    with answering(tls=tls_server) as server, transport(server) as client:
        assert type(failed(client)) is TLSVerificationError


@pytest.mark.parametrize("variable", CA_VARIABLES)
def test_the_callers_authority_wins(variable, tls_server, tls_client, other_ca, monkeypatch):
    monkeypatch.setenv(variable, other_ca)

    with answering(tls=tls_server) as server, transport(server, tls=tls_client) as client:
        assert client.send(ASK, None, {}) == {"ok": True}


TRYING = """
    import sys
    from protolink_sync.errors import TLSVerificationError
    from protolink_sync.models import ClientRequestSpec
    from protolink_sync.transport import HTTPTransport

    for trust in (False, True, False):
        with HTTPTransport(sys.argv[1], trust_env=trust) as client:
            try:
                client.send(ClientRequestSpec("ask", "/ask", "POST"), None, {})
                print("trusted")
            except TLSVerificationError:
                print("refused")
"""


@pytest.mark.parametrize("variable", [*CA_VARIABLES, "SSL_CERT_DIR"])
def test_the_environment_can_be_switched_off(variable, tls_server, tls_files, tmp_path):
    """OpenSSL itself reads two of them when it is asked for the system's authorities."""
    named = tls_files.ca
    if variable == "SSL_CERT_DIR":
        run = ["openssl", "x509", "-noout", "-subject_hash", "-in", tls_files.ca]
        name = subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip()
        shutil.copy(tls_files.ca, tmp_path / f"{name}.0")
        named = str(tmp_path)

    with answering(tls=tls_server) as server:
        told = in_fresh_process(TRYING, server.base, **{variable: named})

    assert told.split() == ["refused", "trusted", "refused"]


def test_a_bundle_that_is_not_there_is_a_value_error_that_names_it(tls_server, monkeypatch):
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/no/such/bundle.pem")

    with answering(tls=tls_server) as server, transport(server) as client:
        with pytest.raises(ValueError, match=r"/no/such/bundle\.pem"):
            client.send(ASK, None, {})

        assert client.metrics.requests_failed == 1


# ---- whom we show ourselves to -----------------------------------------------------------------


@pytest.fixture(params=[ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
def asking_server(request, tls_server, tls_files) -> ssl.SSLContext:
    """What a peer serves with that wants to see a certificate."""
    tls_server.load_verify_locations(tls_files.ca)
    tls_server.verify_mode = ssl.CERT_REQUIRED
    tls_server.minimum_version = tls_server.maximum_version = request.param
    return tls_server


def test_a_peer_that_wants_a_certificate_gets_it(asking_server, tls_files):
    tls = TLSConfig(tls_files.client_cert, tls_files.client_key, tls_files.ca)

    with answering(tls=asking_server) as server, transport(server, tls=tls) as client:
        assert client.send(ASK, None, {}) == {"ok": True}


def test_a_peer_that_wants_a_certificate_and_gets_none_refuses(asking_server, tls_client):
    with answering(tls=asking_server) as server, transport(server, tls=tls_client) as client:
        error = failed(client)

        assert isinstance(error, TransportConnectionError)
        assert not isinstance(error, TLSVerificationError)
        check_whole(error, server)
        assert not server.requests


# ---- files -------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["cafile", "certfile", "keyfile"])
def test_a_file_that_is_not_there_is_refused_at_once(field, tls_files):
    files = {"certfile": tls_files.client_cert, "keyfile": tls_files.client_key}

    with pytest.raises(ValueError, match=field):
        TLSConfig(**{**files, field: "/no/such/file.pem"})


def test_a_certificate_without_its_key_is_refused_at_once(tls_files):
    with pytest.raises(ValueError, match="keyfile"):
        TLSConfig(certfile=tls_files.client_cert)


def test_a_key_of_another_certificate_is_a_value_error(tls_files, tls_server):
    tls = TLSConfig(tls_files.client_cert, tls_files.server_key, tls_files.ca)

    with (
        answering(tls=tls_server) as server,
        transport(server, tls=tls) as client,
        pytest.raises(ValueError, match="certfile"),
    ):
        client.send(ASK, None, {})


def test_a_file_that_is_no_certificate_is_a_value_error(tmp_path, tls_server):
    (tmp_path / "ca.pem").write_text("no certificate")

    with (
        answering(tls=tls_server) as server,
        transport(server, tls=TLSConfig(cafile=tmp_path / "ca.pem")) as client,
        pytest.raises(ValueError, match=r"ca\.pem"),
    ):
        client.send(ASK, None, {})


def test_an_encrypted_key_is_a_value_error_and_no_question_at_the_terminal(
    tmp_path, tls_files, tls_server
):
    from cryptography.hazmat.primitives import serialization

    with open(tls_files.client_key, "rb") as file:
        key = serialization.load_pem_private_key(file.read(), None)
    encrypted = tmp_path / "client.key"
    encrypted.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.BestAvailableEncryption(b"word"),
        )
    )
    tls = TLSConfig(tls_files.client_cert, encrypted, tls_files.ca)

    with (
        answering(tls=tls_server) as server,
        transport(server, tls=tls) as client,
        pytest.raises(ValueError, match="encrypted"),
    ):
        client.send(ASK, None, {})


def test_a_tls_setting_of_another_type_is_refused():
    with pytest.raises(TypeError, match="TLSConfig"):
        HTTPTransport(tls="ca.pem")


# ---- not TLS -----------------------------------------------------------------------------------


def test_a_plain_http_answer_to_tls_asks_whether_http_was_meant(tls_client):
    answer = send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    with (
        serving([{"op": "recv_some"}, answer, HOLD]) as server,
        transport(tls=tls_client) as client,
        pytest.raises(TransportConnectionError, match="Did you mean http://") as caught,
    ):
        client.send(ASK, f"https://127.0.0.1:{server.port}", {})

    assert not caught.value.retryable


def test_plain_http_to_a_tls_port_is_an_error(tls_server):
    with (
        answering(tls=tls_server) as server,
        transport() as client,
        pytest.raises((TransportConnectionError, TransportProtocolError)),
    ):
        client.send(ASK, f"http://127.0.0.1:{server.port}", {})


# ---- handshakes that do not end ----------------------------------------------------------------


def https(server) -> str:
    return f"https://127.0.0.1:{server.port}"


def test_a_handshake_that_stalls_ends_with_the_connect_time_out(tls_client):
    config = TransportConfig(connect_timeout=0.3)

    with serving([HOLD]) as server, transport(tls=tls_client, config=config) as client:
        error = failed(client, url=https(server))

        assert type(error) is TransportTimeoutError
        assert error.retryable
        assert error.phase == "tls"
        assert "connect_timeout of 0.3 s" in str(error)
        assert error.elapsed == about(0.3)
        assert server.wait_for_end() == "client"


def test_a_handshake_that_stalls_ends_with_the_budget(tls_client):
    with serving([HOLD]) as server, transport(tls=tls_client) as client:
        error = failed(client, url=https(server), timeout=0.3)

    assert type(error) is TransportTimeoutError
    assert not error.retryable
    assert error.phase == "tls"


def test_a_handshake_that_stalls_ends_with_its_token(tls_client):
    token = CancelToken()

    with serving([{"op": "recv_some"}, HOLD]) as server, transport(tls=tls_client) as client:
        call = Calling(client.send, ASK, https(server), {}, cancel=token)
        assert wait_until(lambda: server.connections and server.connections[0].received)
        begin = time.monotonic()
        token.cancel()
        with pytest.raises(CallCancelledError) as caught:
            call.result()

    assert time.monotonic() - begin < 0.5
    assert caught.value.phase == "tls"


@pytest.mark.parametrize("how", [CLOSE, RST], ids=["closed", "reset"])
@pytest.mark.parametrize("when", ["at once", "after our hello"])
def test_a_handshake_that_is_cut_is_a_connection_error_that_may_be_retried(how, when, tls_client):
    before = [] if when == "at once" else [{"op": "recv_some"}]

    with serving([*before, how]) as server, transport(tls=tls_client) as client:
        error = failed(client, url=https(server))

    assert type(error) is TransportConnectionError
    assert error.retryable
    # A reset may come before the connection is known to stand.
    assert error.phase in ("connect", "tls") if how is RST else error.phase == "tls"


# ---- contexts ----------------------------------------------------------------------------------


def count_contexts(monkeypatch) -> list[int]:
    made: list[int] = []
    real = ssl.SSLContext.__new__

    def counted(cls, *args, **words):
        made.append(1)
        return real(cls, *args, **words)

    monkeypatch.setattr(ssl.SSLContext, "__new__", counted)
    return made


def test_one_context_serves_all_transports_and_calls_of_one_setting(
    tls_server, tls_files, monkeypatch, tmp_path
):
    # A file of its own, so that no test before this one has made the context.
    own = tmp_path / "ca.pem"
    shutil.copy(tls_files.ca, own)
    made = count_contexts(monkeypatch)

    with answering(tls=tls_server) as server:
        for _ in range(3):
            with transport(server, tls=TLSConfig(cafile=own)) as client:
                client.send(ASK, None, {})
                client.send(ASK, None, {})

    assert len(made) == 1


def test_plain_http_makes_no_tls_context():
    """It takes 10 ms and a MB: to read all authorities of the system."""
    program = """
        import ssl, sys
        made = []
        real = ssl.SSLContext.__new__
        ssl.SSLContext.__new__ = lambda cls, *args, **words: made.append(1) or real(cls, *args)

        from protolink_sync.models import ClientRequestSpec
        from protolink_sync.transport import HTTPTransport

        # What libraries make at import is not ours.
        before = len(made)
        with HTTPTransport(sys.argv[1]) as client:
            client.send(ClientRequestSpec("ask", "/ask", "POST"), None, {})
        print(len(made) - before)
    """

    with answering() as server:
        # Imported by the first use, inside the with statement: urllib3 makes none either.
        assert in_fresh_process(program, server.base).strip() == "0"


def test_a_connection_that_was_never_used_for_tls_needs_no_readable_bundle(monkeypatch):
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/no/such/bundle.pem")

    with answering() as server, transport(server) as client:
        assert client.send(ASK, None, {}) == {"ok": True}


# ---- real peers --------------------------------------------------------------------------------


def test_a_real_peer_over_tls_with_certificates_on_both_sides(shared_peer, tls_files):
    peer = shared_peer(
        "http", "--cert", tls_files.server_cert, "--key", tls_files.server_key, "--ca", tls_files.ca
    )
    both = TLSConfig(tls_files.client_cert, tls_files.client_key, tls_files.ca)
    task = Task.create(Message.user("echo hi"))

    assert peer.url.startswith("https://")
    with HTTPTransport(peer.url, tls=both) as client:
        assert client.send(TASK_REQUEST, None, task).text == "hi"
    with HTTPTransport(peer.url, tls=TLSConfig(cafile=tls_files.ca)) as client:
        assert isinstance(failed(client, TASK_REQUEST, data=task), TransportConnectionError)
    with HTTPTransport(peer.url, tls=TLSConfig()) as client:
        assert type(failed(client, TASK_REQUEST, data=task)) is TLSVerificationError


def test_sockets_over_tls_keep_alive(tls_server, tls_client):
    """A peer that vanished without a word is noticed by the system."""
    with answering(tls=tls_server) as server, transport(server, tls=tls_client) as client:
        client.send(ASK, None, {})

        with connections_to(server.port) as sockets:
            assert sockets
            for sock in sockets:
                assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


def test_a_connection_that_is_reset_before_tls_leaves_no_socket():
    """The standard library would lose it unclosed, and might take it for one without TLS."""
    context = client_context(None, None)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        opened = socket.create_connection(listener.getsockname())
        accepted, _ = listener.accept()
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        accepted.close()
        with pytest.raises(OSError):
            opened.recv(1)

        with pytest.raises(ConnectionResetError, match="before TLS"):
            context.wrap_socket(opened, server_hostname="peer.test")

    # A socket that is lost unclosed warns, and a warning is an error here.
    gc.collect()
