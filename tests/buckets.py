"""A bucket of S3 for tests: moto's server, which speaks the protocol, in this process."""

from __future__ import annotations

import urllib.request

from pyarrow import fs
from servers import free_port

SECRET = "hidden-from-all"


class Bucket:
    """The bucket `data` of a server that can be stopped and started again, with what is in it."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()
        # All servers of moto in a process have the same buckets.
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/moto-api/reset", method="POST")).close()
        self.files = fs.S3FileSystem(
            access_key="a", secret_key="s", region="us-east-1", endpoint_override=self.url, allow_bucket_creation=True
        )
        self.files.create_dir("data")

    def start(self) -> None:
        from moto.server import ThreadedMotoServer  # imported late: takes half a second, in every worker

        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=self.port, verbose=False)
        self._server.start()

    def stop(self) -> None:
        self._server.stop()

    def put(self, name: str, content: bytes) -> None:
        with self.files.open_output_stream(f"data/{name}") as stream:
            stream.write(content)

    def names(self, folder: str) -> list[str]:
        found = self.files.get_file_info(fs.FileSelector(f"data/{folder}", True, True))
        return sorted(info.path for info in found if info.type == fs.FileType.File)

    def options(self, *more: str) -> str:
        given = (
            f"connector = 's3', s3.region_name = 'us-east-1', s3.bucket_name = 'data', s3.endpoint_url = '{self.url}'",
            f"s3.credentials.access = 'a', s3.credentials.secret = '{SECRET}'",
        )
        return ", ".join((*given, *more))
