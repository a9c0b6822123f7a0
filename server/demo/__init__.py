"""`sparkwave demo`: a tour over the wire, on a server of its own."""
