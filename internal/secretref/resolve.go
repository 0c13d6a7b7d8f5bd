package secretref

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// maxFileBytes is far above the size of any token or key.
const maxFileBytes = 64 << 10

// ErrLiteral is the error for a text that should be a reference and is not. It does
// not contain the text, which may be a secret.
var ErrLiteral = errors.New("not a reference to a secret: write env:NAME for an environment variable or file:/path for a file")

// Is reports whether s is a reference.
func Is(s string) bool {
	scheme, rest, ok := strings.Cut(s, ":")
	return ok && rest != "" && (scheme == "env" || scheme == "file")
}

// Resolve returns the secret that ref refers to. It is an error if the variable is
// unset or empty, the file is missing or empty, or ref is no reference. Errors name
// the variable or file, never the secret.
func Resolve(ref string, getenv func(string) string) (string, error) {
	if !Is(ref) {
		return "", ErrLiteral
	}
	scheme, rest, _ := strings.Cut(ref, ":")
	if scheme == "env" {
		value := getenv(rest)
		if value == "" {
			return "", fmt.Errorf("environment variable %s is not set", rest)
		}
		return value, nil
	}
	return fromFile(rest)
}

// Files returns the paths that s names, which is a reference or a text with ${…} in it.
func Files(s string) (paths []string) {
	if path, ok := strings.CutPrefix(s, "file:"); ok {
		return []string{path}
	}
	const begin = "${file:"
	for {
		_, rest, ok := strings.Cut(s, begin)
		if !ok {
			return paths
		}
		path, after, ok := strings.Cut(rest, "}")
		if !ok {
			return paths
		}
		paths, s = append(paths, path), after
	}
}

func fromFile(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("secret: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxFileBytes {
		return "", fmt.Errorf("secret: %s is not a regular file of at most %d bytes", path, maxFileBytes)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("secret: %w", err)
	}
	value := strings.TrimRight(string(data), "\r\n")
	if value == "" {
		return "", fmt.Errorf("secret: %s is empty", path)
	}
	return value, nil
}

// Expand replaces every ${env:NAME} and ${file:/path} in s by its secret. If replace
// is not nil, it escapes each secret for its context, like url.QueryEscape.
func Expand(s string, getenv func(string) string, replace func(string) string) (string, error) {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, "${")
		b.WriteString(before)
		if !ok {
			return b.String(), nil
		}
		ref, after, ok := strings.Cut(rest, "}")
		if !ok || !Is(ref) {
			return "", errors.New("after ${ there must be env:NAME} or file:/path}")
		}
		value, err := Resolve(ref, getenv)
		if err != nil {
			return "", err
		}
		if replace != nil {
			value = replace(value)
		}
		b.WriteString(value)
		s = after
	}
}
