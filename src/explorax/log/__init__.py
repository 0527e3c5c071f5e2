"""What was decided and what came of it: logs as files, and as arrays."""
