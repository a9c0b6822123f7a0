"""Occasional work: compaction, retention, removal of orphans, backups and checks."""
