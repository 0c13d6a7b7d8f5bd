// Package secretref resolves references to secrets: configuration says where a
// secret is kept, and never the secret itself.
//
// A reference is `env:NAME`, an environment variable, or `file:/path`, a file
// whose trailing line break is not part of the secret. Inside a longer text it
// is written `${env:NAME}` or `${file:/path}`.
package secretref
