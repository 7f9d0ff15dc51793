"""Reports which ways to read a request's path lead to /login. Prints its port; ends with its input."""

import posixpath
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlparse, urlsplit


def readings(target):
    yield "raw", lambda: target.partition("?")[0]
    yield "split", lambda: urlsplit(target).path
    yield "parse", lambda: urlparse(target).path
    # The path of a WSGI application.
    yield "wsgi", lambda: unquote(target.partition("?")[0])
    yield "unquoted", lambda: unquote(urlsplit(target).path)
    yield "file", lambda: posixpath.normpath(unquote(target.partition("?")[0].partition("#")[0]))
    yield "twice", lambda: posixpath.normpath(unquote(unquote(urlsplit(target).path)))


def is_login(read):
    try:
        return "/" + read().strip("/") == "/login"
    except ValueError:
        return False


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        # `self.path` has no repeated slash at its beginning; the request line does.
        targets = {self.path, self.requestline.split(" ")[1]}
        found = [name for target in targets for name, read in readings(target) if is_login(read)]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(" ".join(found).encode())

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
