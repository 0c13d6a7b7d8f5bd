package layout

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const architecture = "docs/architecture.md"

// order is the order of the packages from the ground up, as docs/architecture.md
// tells it to a reader: each package imports only those above it in that table.
func order(t *testing.T) []string {
	t.Helper()
	return firstCells(t, architecture, "## Packages, from the ground up")
}

// firstCells returns the code spans in the first column of the table below a heading.
func firstCells(t *testing.T, file, heading string) []string {
	t.Helper()
	_, section, ok := strings.Cut(read(t, file), heading+"\n")
	if !ok {
		t.Fatalf("%s has no section %q", file, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var cells []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(section, -1) {
		cells = append(cells, strings.TrimSuffix(m[1], "/"))
	}
	return cells
}

// The table is whole, and every import points up in it: no package knows of one that
// is built on it.
func TestImportsPointOneWay(t *testing.T) {
	all := packages(t)
	rank := map[string]int{}
	for i, dir := range order(t) {
		if _, twice := rank[dir]; twice {
			t.Errorf("%s: %s is listed twice", architecture, dir)
		}
		if p := all[dir]; p == nil || p.testOnly {
			t.Errorf("%s: there is no package %s", architecture, dir)
		}
		rank[dir] = i
	}
	for dir, p := range all {
		mine, listed := rank[dir]
		if !listed && !p.testOnly && !p.sample() {
			t.Errorf("%s does not list %s (go test ./internal/layout -run Architecture -update adds it)", architecture, dir)
			continue
		}
		for imp := range p.imports {
			other, ours := strings.CutPrefix(imp, module+"/")
			if theirs := rank[other]; ours && listed && theirs >= mine {
				t.Errorf("%s imports %s, which stands below it in %s", dir, other, architecture)
			}
		}
	}
}

// The README shows the same order, of the top-level folders.
func TestReadmeOrder(t *testing.T) {
	full := order(t)
	last := -1
	for _, dir := range firstCells(t, "README.md", "## Where things are") {
		// A folder stands where its own package does, and one without where its first does:
		// what a package knows may be below others, as the spans of calls are.
		at := slices.Index(full, dir)
		if at < 0 {
			at = slices.IndexFunc(full, func(p string) bool { return strings.HasPrefix(p, dir+"/") })
		}
		switch {
		case at < 0:
			continue // no package, or a module of its own
		case dir == "internal":
			continue // some of it is below everything, some above
		case at < last:
			t.Errorf("README.md lists %s after %s, and %s does not", dir, full[last], architecture)
		}
		last = at
	}
}

// What a package must never need, directly or through another: the prefix of an
// import path, and those that may.
func TestForbiddenDependencies(t *testing.T) {
	all := packages(t)
	closures := map[string]map[string]bool{}
	for _, rule := range []struct {
		what    string
		allowed []string // folders, with what is below them
	}{
		{"github.com/nats-io/nats", []string{"transport/nats", "daemon", "internal/cli", "internal/reference", "internal/natstest", "cmd"}},
		{"github.com/jackc/", []string{"internal/sqlread", "action", "registry", "internal/fleetlint", "daemon", "internal/cli", "internal/reference", "cmd"}},
		{"github.com/xeipuuv/gojsonschema", []string{"capability/gojsonschema", "daemon", "internal/cli", "internal/reference", "cmd"}},
		{"modernc.org/sqlite", []string{"internal/sqlread", "internal/sqlitetest", "internal/fleetlint", "action", "registry", "auditchain", "rpc/idempotency", "daemon", "internal/cli", "internal/reference", "cmd"}},
		{"database/sql", []string{"internal/sqlread", "internal/sqlitetest", "internal/fleetlint", "action", "registry", "auditchain", "rpc/idempotency", "daemon", "internal/cli", "internal/reference", "cmd"}},
		{"github.com/spf13/", []string{"cmd"}},
		{"go.opentelemetry.io/", []string{"internal/otlp", "internal/otlptest", "auditchain/export", "daemon", "internal/cli", "internal/reference", "cmd"}},
		{"go.yaml.in/", []string{"internal/mcpaccess", "internal/strictyaml", "internal/yamledit", "internal/fleetlint", "internal/mcptool", "internal/capabilitylist", "capability", "internal/peertool", "mcpbridge", "registry", "action", "fleet", "policy", "transport", "rpc", "drift", "codegen", "skill", "daemon", "internal/cli", "internal/reference", "cmd"}},
		{"github.com/modelcontextprotocol/", []string{"internal/mcpaccess", "internal/mcpauth", "internal/mcpclient", "internal/mcptool", "registry", "mcpbridge", "internal/fleetlint", "daemon", "internal/cli", "internal/reference", "cmd"}},
		{"net/http", []string{"internal/mcpaccess", "internal/mcpauth", "internal/mcpclient", "internal/mcptool", "internal/netguard", "internal/notifier", "internal/otlp", "internal/otlptest", "action", "registry", "mcpbridge", "internal/fleetlint", "auditchain/export", "skill", "daemon", "transport/nats", "internal/cli", "internal/reference", "internal/natstest", "internal/oauthtest", "cmd", "agents"}},
	} {
		for dir, p := range all {
			if p.testOnly || slices.ContainsFunc(rule.allowed, func(a string) bool { return dir == a || strings.HasPrefix(dir, a+"/") }) {
				continue
			}
			for imp := range closure(all, closures, dir) {
				if strings.HasPrefix(imp, rule.what) {
					t.Errorf("%s needs %s, by way of %s", dir, imp, strings.Join(path(all, dir, imp), " → "))
				}
			}
		}
	}
}

// closure is what dir imports, directly or through packages of ours.
func closure(all map[string]*pkg, known map[string]map[string]bool, dir string) map[string]bool {
	if c := known[dir]; c != nil {
		return c
	}
	c := map[string]bool{}
	known[dir] = c
	for imp := range all[dir].imports {
		c[imp] = true
		if other, ours := strings.CutPrefix(imp, module+"/"); ours && all[other] != nil {
			maps.Copy(c, closure(all, known, other))
		}
	}
	return c
}

// path is a shortest way from dir to an import.
func path(all map[string]*pkg, dir, imp string) []string {
	ways := [][]string{{dir}}
	seen := map[string]bool{dir: true}
	for len(ways) > 0 {
		way := ways[0]
		ways = ways[1:]
		at := way[len(way)-1]
		if all[at] == nil {
			continue
		}
		for _, next := range slices.Sorted(maps.Keys(all[at].imports)) {
			longer := append(slices.Clone(way), strings.TrimPrefix(next, module+"/"))
			if next == imp {
				return longer
			}
			if next = strings.TrimPrefix(next, module+"/"); !seen[next] {
				seen[next] = true
				ways = append(ways, longer)
			}
		}
	}
	return nil
}
