"""The drivers' own test suites, run against Sparkwave and against PostgreSQL."""
