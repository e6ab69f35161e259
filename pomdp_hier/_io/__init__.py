"""What every reader and writer of files shares: what a file is, CSV, memory there is, files written whole."""
