// Package rootfs reads files below folders that the operator names, by paths that
// somebody else chooses.
//
// A path is the name of a folder and what is below it, as in "reports/2026/may.csv".
// [os.Root] resolves it, so that neither "..", nor an absolute path, nor a symbolic link
// leads out of the folder, whatever is renamed or swapped meanwhile: each step is taken
// from the folder before by its descriptor. A link that stays inside is followed.
//
// What is opened is then judged by its descriptor, not by its path: only regular files
// are read, so that no device, pipe or socket can block or act, and no file system that
// the kernel makes up, such as /proc. A file with several names (hard links) is refused,
// because one of them may lie outside: whoever can write to the folder could have linked
// a file there that they cannot read themselves.
//
// Where to look: path.go checks paths, tree.go holds the folders, open.go judges files,
// read.go reads and decodes them, list.go and search.go look around, and write.go writes.
package rootfs
