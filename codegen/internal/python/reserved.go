package python

import (
	"slices"
	"strings"

	"github.com/agentd/agentd/codegen/internal/source"
)

// keywords returns the words that Python reserves; match, case and type are names as
// well. No parameter, method or module can be called so.
func keywords() []string {
	return strings.Fields("and as assert async await break class continue def del elif else except finally for from " +
		"global if import in is lambda nonlocal not or pass raise return try while with yield")
}

// typeWords returns the names that annotations use. A class member of that name
// would hide the type from the members below it.
func typeWords() []string {
	return strings.Fields("str int float bool list dict None Any Literal Never NotRequired Union Result Ok True False")
}

// isReservedModule reports whether a module must not have that name. A generated module
// lies where programs begin, and Python looks there first: logging.py would be the logging
// of every library in the process.
func isReservedModule(name string) bool {
	return source.IsDevice(name) || slices.Contains(keywords(), name) || slices.Contains(standardModules(), name) || slices.Contains(otherModules(), name)
}

// otherModules returns modules beyond the standard library that Python, the type checkers
// or pytest look for by name, and the kit that generated modules may import.
func otherModules() []string {
	return []string{"agentd", "conftest", "mypy_extensions", "sitecustomize", "typing_extensions", "usercustomize"}
}

// standardModules returns the modules of the standard library from Python 3.10 to 3.14
// that do not begin with an underscore: sys.stdlib_module_names of each, in lower case.
func standardModules() []string {
	return strings.Fields(`
		abc aifc annotationlib antigravity argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb binascii
		binhex bisect builtins bz2 calendar cgi cgitb chunk cmath cmd code codecs codeop collections colorsys compileall
		compression concurrent configparser contextlib contextvars copy copyreg cprofile crypt csv ctypes curses dataclasses
		datetime dbm decimal difflib dis distutils doctest email encodings ensurepip enum errno faulthandler fcntl filecmp
		fileinput fnmatch fractions ftplib functools gc genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq
		hmac html http idlelib imaplib imghdr imp importlib inspect io ipaddress itertools json keyword lib2to3 linecache
		locale logging lzma mailbox mailcap marshal math mimetypes mmap modulefinder msilib msvcrt multiprocessing netrc nis
		nntplib nt ntpath nturl2path numbers opcode operator optparse os ossaudiodev pathlib pdb pickle pickletools pipes
		pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc pydoc_data
		pyexpat queue quopri random re readline reprlib resource rlcompleter runpy sched secrets select selectors shelve shlex
		shutil signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile sre_constants sre_parse ssl stat
		statistics string stringprep struct subprocess sunau symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile
		termios test textwrap this threading time timeit tkinter token tokenize tomllib trace traceback tracemalloc tty turtle
		turtledemo types typing unicodedata unittest urllib uu uuid venv warnings wave weakref webbrowser winreg winsound
		wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib zoneinfo`)
}
