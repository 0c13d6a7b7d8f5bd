package sdk

import (
	"os"
	"testing"
)

// A program that a worker starts is none for that: it would wait for messages.
func TestIsWorkerHidesItFromOthers(t *testing.T) {
	t.Setenv(EnvWorker, "1")
	if !isWorker() || isWorker() || os.Getenv(EnvWorker) != "" {
		t.Errorf("%s is %q", EnvWorker, os.Getenv(EnvWorker))
	}
}
