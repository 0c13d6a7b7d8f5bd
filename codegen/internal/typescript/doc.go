// Package typescript writes a client as one module: types and what makes and serves
// calls, on the kit for TypeScript or standalone.
package typescript
