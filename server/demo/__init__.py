"""`sparkwave demo`: a tour over the wire, on a temporary server."""
