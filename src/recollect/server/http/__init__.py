"""The server over HTTP: every operation as JSON, readable routes for the common ones, streams, and a description."""
