"""A peer that takes a request, never answers, and says when its caller has gone."""

from __future__ import annotations

import queue
import socket
import threading
import time


class SilentPeer:
    """Listens on the loopback; each caller's coming and going is told through a queue.

    Attributes:
        asked: Gets the head of each request, when it has come.
        left: Gets the moment at which each caller closed its connection.
    """

    def __init__(self) -> None:
        self.asked: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.left: queue.SimpleQueue[float] = queue.SimpleQueue()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                caller, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._hold, args=(caller,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _hold(self, caller: socket.socket) -> None:
        with caller:
            self.asked.put(caller.recv(65536).decode("latin-1"))
            try:
                while caller.recv(65536):
                    pass
            except OSError:
                pass
            self.left.put(time.monotonic())

    def __enter__(self) -> SilentPeer:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(5)
