// Package schematest draws random schemas and values for the tests of schema and of
// the packages below it.
package schematest
