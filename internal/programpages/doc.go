// Package programpages takes pages of the running program's own file out of its resident
// memory.
//
// A start runs code that nothing runs again: of each package that is initialised, of the
// parsers of files, of the first opening of each thing. Its pages stay mapped, and count as
// memory of the process in ps, in dashboards, and where the kernel chooses whom to kill,
// though they are clean copies of a file. What is still used comes back from the page cache
// with a minor fault.
package programpages
