// Package httplisten accepts connections for HTTP servers that strangers may reach: it bounds how
// many are open, speaks TLS with the certificate in force, and ends plain connections when a
// certificate comes.
package httplisten
