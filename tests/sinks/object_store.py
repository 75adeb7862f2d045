"""An object store on this machine that Arrow's S3 client talks to: objects in a dictionary, behind HTTP.

It knows as much of S3 as a sink needs: whole objects, objects in parts, copies, listing, looking, removing one or many.
As in S3, an object appears when it is complete, and an upload that nobody completes never does.
"""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

BUCKET = "results"


class ObjectStore(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.requests: list[str] = []
        self.refuses = ""
        """Requests with this text in their first line are denied."""

    def uri(self, path: str) -> str:
        where = f"127.0.0.1:{self.server_address[1]}"
        return f"s3://key:secret@{BUCKET}/{path}?scheme=http&endpoint_override={where}&region=us-east-1"

    def names(self) -> list[str]:
        return sorted(name for name in self.objects if not name.endswith("/"))


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    store = ObjectStore()
    thread = threading.Thread(target=store.serve_forever, daemon=True)
    thread.start()
    try:
        yield store
    finally:
        store.shutdown()
        store.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ObjectStore

    def log_message(self, format: str, *arguments: object) -> None:
        self.server.requests.append(self.requestline)

    def parse_request(self) -> bool:
        understood = super().parse_request()
        if understood and self.server.refuses and self.server.refuses in self.requestline:
            self._body()
            denied = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
            self._answer(403, denied)
            return False
        return understood

    def _asked(self) -> tuple[str, dict[str, list[str]]]:
        parts = urlsplit(self.path)
        _, _, key = unquote(parts.path).removeprefix("/").partition("/")
        return key, parse_qs(parts.query, keep_blank_values=True)

    def _answer(self, status: int, body: bytes = b"", length: int | None = None, etag: str = '"0"') -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.send_header("ETag", etag)
        self.send_header("Last-Modified", "Sat, 31 Jan 2026 09:00:00 GMT")
        self.end_headers()
        self.wfile.write(body)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = _unchunked(self.rfile)
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        # Amazon's client cuts what it sends into chunks of its own too, with a checksum behind them.
        return _unchunked(io.BytesIO(body)) if "aws-chunked" in self.headers.get("Content-Encoding", "") else body

    def do_PUT(self) -> None:
        key, query = self._asked()
        body = self._body()
        if "uploadId" in query:
            self.server.uploads[query["uploadId"][0]][int(query["partNumber"][0])] = body
        elif (source := self.headers.get("x-amz-copy-source")) is not None:
            self.server.objects[key] = self.server.objects[unquote(source).removeprefix("/").partition("/")[2]]
            self._answer(200, b"<CopyObjectResult></CopyObjectResult>")
            return
        elif key:
            self.server.objects[key] = body
        self._answer(200)

    def do_POST(self) -> None:
        key, query = self._asked()
        body = self._body()
        if "delete" in query:
            for found in re.findall(r"<Key>(.*?)</Key>", body.decode()):
                self.server.objects.pop(unescape(found), None)
            self._answer(200, b"<DeleteResult></DeleteResult>")
        elif "uploads" in query:
            upload = f"upload{len(self.server.uploads)}"
            self.server.uploads[upload] = {}
            answer = f"<UploadId>{upload}</UploadId>"
            self._answer(200, f"<InitiateMultipartUploadResult>{answer}</InitiateMultipartUploadResult>".encode())
        else:
            parts = self.server.uploads.pop(query["uploadId"][0])
            self.server.objects[key] = b"".join(parts[number] for number in sorted(parts))
            answer = f"<Bucket>{BUCKET}</Bucket><Key>{escape(key)}</Key>"
            self._answer(200, f"<CompleteMultipartUploadResult>{answer}</CompleteMultipartUploadResult>".encode())

    def do_HEAD(self) -> None:
        key, _ = self._asked()
        if key and key not in self.server.objects:
            self._answer(404)
        else:
            self._answer(200, length=len(self.server.objects.get(key, b"")))

    def do_GET(self) -> None:
        key, query = self._asked()
        if "list-type" in query:
            self._list(query.get("prefix", [""])[0], query.get("delimiter", [""])[0])
        elif key in self.server.objects:
            self._answer(200, self.server.objects[key])
        else:
            self._answer(404)

    def _list(self, prefix: str, delimiter: str) -> None:
        found, folders = "", set[str]()
        for name, body in sorted(self.server.objects.items()):
            if not name.startswith(prefix):
                continue
            below, deeper, _ = name[len(prefix) :].partition(delimiter) if delimiter else (name, "", "")
            if deeper:
                folders.add(f"{prefix}{below}{delimiter}")
                continue
            found += (
                f"<Contents><Key>{escape(name)}</Key><Size>{len(body)}</Size>"
                "<LastModified>2026-01-31T09:00:00.000Z</LastModified></Contents>"
            )
        shared = "".join(
            f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>" for folder in sorted(folders)
        )
        count = found.count("<Key>") + len(folders)
        answer = f"<IsTruncated>false</IsTruncated><KeyCount>{count}</KeyCount>{found}{shared}"
        self._answer(200, f"<ListBucketResult>{answer}</ListBucketResult>".encode())

    def do_DELETE(self) -> None:
        key, _ = self._asked()
        self.server.objects.pop(key, None)
        self._answer(204)


def _unchunked(stream: io.BufferedIOBase) -> bytes:
    body = b""
    while size := int(stream.readline().partition(b";")[0], 16):
        body += stream.read(size)
        stream.readline()
    while stream.readline().strip():
        pass
    return body
