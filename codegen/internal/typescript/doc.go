// Package typescript writes a client as one module of types and a function that
// makes calls, without dependencies.
package typescript
