// Package python writes a client as one module for Python 3.11 and its standard
// library: payloads are TypedDicts, and there is a client that blocks and one
// for asyncio.
package python
