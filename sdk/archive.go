package sdk

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"time"
)

// An Archive is a file that a package manager installs. The same sources make the same bytes.
type Archive struct {
	// Name is what the package manager expects the file to be called.
	Name string
	Data []byte
}

// A file is one of an archive.
type file struct {
	name string // with slashes
	data []byte
}

const mode = 0o644

// stamp is the time of every file: the earliest that zip can have.
func stamp() time.Time { return time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC) }

func zipped(files []file) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: stamp()}
		h.SetMode(mode)
		part, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := part.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

func tarred(files []file) ([]byte, error) {
	var b bytes.Buffer
	compressed := gzip.NewWriter(&b) // its header has no time
	w := tar.NewWriter(compressed)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: mode, Size: int64(len(f.data)), ModTime: stamp(), Format: tar.FormatUSTAR}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	err := compressed.Close()
	return b.Bytes(), err
}
