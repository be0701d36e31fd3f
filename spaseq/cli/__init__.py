"""The `spaseq` command."""
