"""The handlers of statements that are neither queries nor writes: a file for each family of statements."""
