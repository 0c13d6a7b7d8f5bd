//go:build !linux

package worker_test

import "os"

func pending(*os.File) int { return -1 }
