package cli

import "runtime/debug"

// Version returns the version of the main module as the build recorded it, or
// (devel) for a build outside a module.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
