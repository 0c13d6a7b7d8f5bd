//go:build !unix

package auditchain

type writerLock struct{}

func lockWriter(path string) (*writerLock, error) {
	return nil, &Error{Code: CodeUnsupported, Path: path,
		Msg: "writing an audit log needs a system with flock", Hint: "run agentd on Linux, macOS or a BSD"}
}

func (*writerLock) release() {}
