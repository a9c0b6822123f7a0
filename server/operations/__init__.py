"""What operators see and set: configuration, logs, metrics, and which of several servers writes."""
