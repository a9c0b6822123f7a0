"""The operator's view of the server: configuration, logs, metrics, and the role of a server among several."""
