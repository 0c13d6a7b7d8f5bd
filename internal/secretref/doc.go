// Package secretref resolves references to secrets. Configuration files contain
// references only, so that they can be kept under version control.
//
// A reference is `env:NAME`, an environment variable, or `file:/path`, a file
// whose trailing line break is not part of the secret. Within a longer text it
// is written `${env:NAME}` or `${file:/path}`.
package secretref
