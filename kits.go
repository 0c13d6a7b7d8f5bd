package agentd

import "embed"

// Kits are those files, at their places in this module. Tests are among the Go files.
//
//go:embed LICENSE
//go:embed sdk/python/src/agentd/*.py sdk/python/src/agentd/py.typed
//go:embed sdk/typescript/package.json sdk/typescript/dist
//go:embed skill/sdk/*.go skill/internal/wire/*.go codegen/typed/*.go internal/ijson/*.go internal/truncate/*.go
var Kits embed.FS
