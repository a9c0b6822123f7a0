"""The Postgres protocol: connections, messages, authentication, values as text and binary, and the formats of COPY."""
