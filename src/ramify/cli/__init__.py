"""The command line: one file a command. Commands parse, call and print; the work is done elsewhere."""
