"""Creates an object of S3 unless the name is in use, by PUT with If-None-Match; Arrow and DuckDB cannot do so.

The store decides: if several servers ask at once, only one of them is told that it has created the object.
"""

from __future__ import annotations

import hashlib
import hmac
import urllib.error
import urllib.request
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import quote, urlsplit

from sparkwave.catalog.lake.s3 import S3

_TIMEOUT_S = 30
_ATTEMPTS = 4
# The object exists; another request is creating it; the store does not support conditions.
_EXISTS, _CONFLICT, _UNKNOWN = 412, 409, 501


class ConditionUnknown(OSError):
    """The store has not created the object, since it does not support conditions."""


def put_new(s3: S3, key: str, content: bytes) -> None:
    """Create an object; `key` begins with the bucket. Raises FileExistsError, ConditionUnknown, or another OSError."""
    url = f"{_endpoint(s3)}/{quote(key)}"
    for attempt in range(1, _ATTEMPTS + 1):
        headers = {"If-None-Match": "*", **signature(s3, url, content, datetime.now(UTC))}
        request = urllib.request.Request(url, content, headers, method="PUT")
        try:
            urllib.request.urlopen(request, timeout=_TIMEOUT_S).close()
            return
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == _EXISTS:
                raise FileExistsError(f"s3://{key}") from error
            if error.code == _UNKNOWN:
                raise ConditionUnknown(f"s3://{key}") from error
            # After a fault of the store, or a lost answer, the object may exist: the next attempt shows that.
            if attempt == _ATTEMPTS or not (error.code == _CONFLICT or error.code >= 500):
                raise OSError(f"PUT s3://{key}: {error.code} {error.reason}") from error
        except OSError:
            if attempt == _ATTEMPTS:
                raise


def _endpoint(s3: S3) -> str:
    """The store's URL. Buckets are named in the path, which every store understands."""
    china = ".cn" if s3.region.startswith("cn-") else ""
    return (s3.endpoint or f"https://s3.{s3.region}.amazonaws.com{china}").rstrip("/")


def signature(s3: S3, url: str, content: bytes, now: datetime) -> Mapping[str, str]:
    """Return the headers that sign a PUT by Amazon's Signature Version 4."""
    parts, digest = urlsplit(url), hashlib.sha256(content).hexdigest()
    time, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
    signed = {"content-type": "application/octet-stream", "host": parts.netloc}
    signed |= {"x-amz-content-sha256": digest, "x-amz-date": time}
    if s3.session_token:
        signed["x-amz-security-token"] = s3.session_token
    names = ";".join(signed)
    lines = "".join(f"{name}:{value}\n" for name, value in signed.items())
    request = f"PUT\n{parts.path}\n\n{lines}\n{names}\n{digest}"
    scope = f"{day}/{s3.region}/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{time}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = f"AWS4{s3.secret_key}".encode()
    for part in (*scope.split("/"), text):
        key = hmac.digest(key, part.encode(), "sha256")
    given = f"AWS4-HMAC-SHA256 Credential={s3.access_key}/{scope}, SignedHeaders={names}, Signature={key.hex()}"
    return {"Authorization": given, **{name: value for name, value in signed.items() if name != "host"}}
