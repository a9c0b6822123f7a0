"""The handlers of statements that are no queries and no writes: a file a family of statements."""
