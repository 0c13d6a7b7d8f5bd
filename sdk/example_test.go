package sdk_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/agentd/agentd/sdk"
)

// The kit for Python as a file that pip installs.
func ExamplePythonWheel() {
	wheel, err := sdk.PythonWheel()
	if err != nil {
		fmt.Println(err)
		return
	}
	dir, err := os.MkdirTemp("", "dist")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, wheel.Name), wheel.Data, 0o600); err != nil {
		fmt.Println(err)
	}
	fmt.Println(filepath.Ext(wheel.Name))
	// Output: .whl
}
