"""What is done now and then: compaction, retention, removal of orphans, backups and checks."""
