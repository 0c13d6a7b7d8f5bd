// Package python writes a client as one module: payloads are TypedDicts, and there is
// a client that blocks and one for asyncio, on the kit for Python or standalone.
package python
